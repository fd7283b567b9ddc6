// Part of window attention (window.cpp): softmax attention of a sequence of tokens, each of which sees the tokens less
// than `window` positions away. The map is a band along the diagonal.
//
//   S_ts = q_t k_s / sqrt(d) for |t - s| < window,    A = softmax(S) row by row,    out = A v
//
// Queries are processed in blocks. All keys seen by any query of a block are multiplied with all its queries; results
// outside the band are not used, and A is zero there. Rows of the band that neither end of the sequence truncates have
// the same length, and each begins one position after the previous row: in a block of the map they are the rows of a
// matrix whose stride is one larger than the block's.
#pragma once

#include "heed/attention/map_blocks.h"

namespace heed {

/// A block of the map.
struct WindowBlock : QueriesAndKeys {
  Index fresh;  ///< number of keys at the block's end that no earlier block sees
};

/// Returns a block's map in memory of [band.most_rows(), band.most_keys()].
template <class T>
Matrix<T> block_of(const WindowBlock& b, Matrix<T> memory) {
  return {memory.data, b.rows, b.seen, memory.stride};
}

/// Consecutive rows of a block's map with equal numbers of keys: the first row starts at `column`, each later row
/// `shift` columns after the previous one.
struct WindowRun {
  Index row, rows, column, columns, shift;

  /// Returns the part of a block's map in which these rows see keys.
  template <class T>
  Matrix<T> of(Matrix<T> map) const {
    return {map[row] + column, rows, columns, map.stride + shift};
  }
};

/// Tokens of one head, and their gradients.
template <class T>
struct WindowTokens {
  Matrix<T> q, k, v;
};

/// Memory for a block of the map and one of its gradient.
template <class T>
struct WindowMaps {
  Matrix<T> A, dA;
};

/// Numbers of queries and keys, window, and scale of the scores. `window` is from 1 to the larger of N and M, and each
/// query sees at least one key.
struct WindowBand {
  Index N, M, window;
  double scale;

  /// Return the bounds of the range [first(t), last(t)) of keys that query t sees.
  Index first(Index t) const { return std::max<Index>(t - window + 1, 0); }
  Index last(Index t) const { return std::min(t + window, M); }

  /// Return the maximum number of rows, and of keys, of a block. Products of few rows are slow; with many rows, most of
  /// a product is outside a narrow band.
  Index most_rows() const { return std::clamp<Index>(window, 16, 64); }
  Index most_keys() const { return std::min(M, most_rows() + 2 * (window - 1)); }

  /// Calls f(block) for all blocks, first to last. With Counted, a block is one query, so that only visible pairs are
  /// counted.
  template <class T, class F>
  void for_each_block(const F& f) const {
    const Index step = std::is_same_v<T, Counted> ? 1 : most_rows();
    for (Index t = 0, seen = 0; t < N; t += step) {
      const Index rows = std::min(step, N - t), end = last(t + rows - 1);
      f(WindowBlock{{t, rows, first(t), end - first(t)}, end - seen});
      seen = end;
    }
  }

  /// Calls f(run) for each run of a block's rows.
  template <class F>
  void for_each_run(const WindowBlock& b, const F& f) const {
    const auto length = [&](Index r) { return last(b.first + r) - first(b.first + r); };
    const auto begin = [&](Index r) { return first(b.first + r) - b.first_key; };
    for (Index r = 0, next; r < b.rows; r = next) {
      next = r + 1;
      const Index shift = next < b.rows ? begin(next) - begin(r) : 0;
      while (next < b.rows && length(next) == length(r) && begin(next) == begin(r) + (next - r) * shift) ++next;
      f(WindowRun{r, next - r, begin(r), length(r), shift});
    }
  }

  /// Zeroes A or dS outside the band.
  template <class T>
  void clear_beside(const WindowBlock& b, Matrix<T> S) const {
    for (Index r = 0; r < b.rows; ++r) {
      std::fill(S[r], S[r] + first(b.first + r) - b.first_key, T(0));
      std::fill(S[r] + last(b.first + r) - b.first_key, S[r] + b.seen, T(0));
    }
  }

  /// Computes A of a block; writes the maximum and the sum of exps of each row to kept [N, 2].
  template <class T>
  void make_map(const kernels::Gemm& gemm, const WindowBlock& b, const WindowTokens<const T>& x, Matrix<T> kept,
                Matrix<T> A) const {
    // 1. S = q k^T
    gemm(b.queries(x.q), transposed(b.keys(x.k)), A);
    // 2. A = softmax(S / sqrt(d)), in place
    for_each_run(b, [&](const WindowRun& run) {
      kernels::attention_softmax({scale}, run.of(A), kept.middle_rows(b.first + run.row, run.rows));
    });
    clear_beside(b, A);
  }

  template <class T>
  void forward(const kernels::Gemm& gemm, const WindowBlock& b, const WindowTokens<const T>& x, Matrix<T> kept,
               const WindowMaps<T>& maps, Matrix<T> out) const {
    const Matrix<T> A = block_of(b, maps.A);
    make_map(gemm, b, x, kept, A);
    // 3. out = A v
    gemm(A, b.keys(x.v), b.queries(out));
  }

  // Undoing 3: dv = A^T dout, dA = dout v^T.
  // Undoing 2: dS = A (dA - sum_s A dA) / sqrt(d), row by row.
  // Undoing 1: dq = dS k, dk = dS^T q.
  // Called from the first block to the last.
  template <class T>
  void backward(const kernels::Gemm& gemm, const WindowBlock& b, const WindowTokens<const T>& x, Matrix<T> kept,
                Matrix<const T> dout, const WindowMaps<T>& maps, Update update, const WindowTokens<T>& dx) const {
    const Matrix<T> A = block_of(b, maps.A), dA = block_of(b, maps.dA), dS = dA;
    // Recompute A.
    gemm(b.queries(x.q), transposed(b.keys(x.k)), A);
    for_each_run(b, [&](const WindowRun& run) {
      kernels::attention_softmax_again({scale}, run.of(A), kept.middle_rows(b.first + run.row, run.rows));
    });
    clear_beside(b, A);
    // 3.
    to_keys(gemm, b, A, b.queries(dout), update, dx.v);
    gemm(b.queries(dout), transposed(b.keys(x.v)), dA);
    // 2. overwrites dA
    for_each_run(b, [&](const WindowRun& run) { kernels::attention_softmax_backward({scale}, run.of(A), run.of(dA)); });
    clear_beside(b, dS);
    // 1.
    gemm(dS, b.keys(x.k), update, b.queries(dx.q));
    to_keys(gemm, b, dS, b.queries(x.q), update, dx.k);
    if (b.first + b.rows < N || update == Update::accumulate) return;
    // Zeroes the gradients of keys that no query sees.
    const Index seen = b.first_key + b.seen;
    fill(dx.k.middle_rows(seen, M - seen), T(0));
    fill(dx.v.middle_rows(seen, M - seen), T(0));
  }

  /// Adds the sequence's numbers of queries, visible keys and visible pairs to those in `map`.
  void add_pairs(MapPairs& map) const {
    for (Index t = 0; t < N; ++t) map.pairs += last(t) - first(t);
    map.queries += N, map.seen += last(N - 1);
  }

 private:
  /// Writes the product weights^T rows to the gradient of a block's keys; accumulates for keys that earlier blocks see.
  template <class T>
  static void to_keys(const kernels::Gemm& gemm, const WindowBlock& b, Matrix<T> weights, Matrix<const T> rows,
                      Update update, Matrix<T> gradient) {
    const Index old = b.seen - b.fresh;
    const Matrix<T> all = b.keys(gradient);
    if (old > 0) gemm(transposed(weights.middle_columns(0, old)), rows, Update::accumulate, all.top_rows(old));
    if (b.fresh > 0)
      gemm(transposed(weights.middle_columns(old, b.fresh)), rows, update, all.middle_rows(old, b.fresh));
  }
};

}  // namespace heed
