// Part of AFT (aft.cpp): the position biases of full and local, w [N, M], and E, computed from them:
//
//   w = u p^T, or a parameter itself;   E = exp(w - max_s w), 0 where s has no bias for t.
//
// Factored biases are computed for all queries once per step if that takes little memory. Otherwise they are computed
// for each block of queries of each image, forward and backward, so that memory stays linear in the tokens.
#pragma once

#include "heed/attention/map_blocks.h"
#include "heed/kernels/sums/exp_sums.h"
#include "heed/kernels/products/gemm.h"

#include <limits>

namespace heed {

/// A block of queries, and the keys with a bias for at least one of them.
struct AftBlock : QueriesAndKeys {
  Index last_key() const { return first_key + seen; }
  bool has_keys_of(const AftBlock& other) const { return first_key == other.first_key && seen == other.seen; }
};

/// The keys visible to each query, and those with a bias.
struct AftReach {
  Index window = 0;  ///< keys with |t - s| < window have a bias
  bool masked = false, causal = false;
  Index queries = 0, keys = 0;  ///< N, M

  /// Query t sees the keys [first, last) with a bias, and [0, before) and [after, M) without a bias. None of these
  /// bounds decreases as t grows.
  struct Range {
    Index first, last, before, after;
  };
  Range operator()(Index t) const {
    const Index seen = causal ? t + 1 : keys;
    if (window == 0) return {seen, seen, seen, keys};
    const Index first = std::max<Index>(t - window + 1, 0), last = std::min(seen, t + window);
    return {first, last, masked ? 0 : first, masked || causal ? keys : last};
  }

  /// Returns the number of rows of sums: one, shared by all queries, if they see the same keys, all without a bias;
  /// otherwise one per query.
  Index rows() const { return window == 0 && !causal ? 1 : queries; }

  /// Returns the maximum number of queries per block. Every block first packs its keys for products, so larger blocks
  /// are faster if their queries see nearly the same keys, as all queries do in AFT-full.
  Index block() const { return std::min<Index>(window < 256 ? 64 : 256, queries); }
  /// Calls f(block) for blocks whose sizes differ by at most one. With Counted, a block is one query, so that only the
  /// visible pairs of a causal or local map are counted.
  template <class T, class F>
  void for_each_block(const F& f) const {
    for_each_block<T>(block(), f);
  }
  template <class T, class F>
  void for_each_block(Index most, const F& f) const {
    const Index count = std::is_same_v<T, Counted> ? queries : (queries + most - 1) / most;
    for (Index i = 0; i < count; ++i) {
      const Index first = queries * i / count, rows = queries * (i + 1) / count - first;
      const Index first_key = (*this)(first).first, last_key = (*this)(first + rows - 1).last;
      f(AftBlock{{first, rows, first_key, last_key - first_key}});
    }
  }

  /// Returns an upper bound on the number of keys per block.
  Index band() const { return std::min(keys, block() + 2 * std::min(window, keys)); }

  /// Returns true if sums over biased keys are computed by matrix products. With a window below 4, over nine tenths of
  /// a block of E (64 queries, 62 + 2 window keys) would be zeros. With Counted, sums are computed key by key.
  bool by_products() const { return window >= 4; }
  template <class T>
  bool by_products_in() const {
    return !std::is_same_v<T, Counted> && by_products();
  }
};

/// w, E and max_s w, with a row for each query; column 0 of w and E belongs to the first key of the query's block. Only
/// matrix products use E and max_s w. The same struct holds gradients: sums computed key by key add their gradient
/// to dw, matrix products add theirs to dE. max_s w has no gradient, since no result depends on it.
template <class T>
struct AftBias {
  Matrix<T> w, E, max_w;

  operator AftBias<const T>() const requires(!std::is_const_v<T>) { return {w, E, max_w}; }

  AftBias part(Index first, Index rows, Index keys) const {
    const auto of = [=](Matrix<T> m, Index columns) {
      return m ? m.middle_rows(first, rows).middle_columns(0, columns) : m;
    };
    return {of(w, keys), of(E, keys), of(max_w, 1)};
  }
};

struct AftBiasMatrix {
  AftReach reach;
  Index channels = 0;
  Index rank = 0;     ///< w = u p^T with u [N, rank], p [M, rank]; 0: w is a parameter
  bool whole = true;  ///< every example has the maximum number of tokens (AttentionShape)

  /// Returns true if the bias is computed once per step. This requires that all examples have the maximum length; that
  /// w is factored, since little would be gained if w itself is a parameter; and that w and E together have at most as
  /// many elements as the values of sixteen images, a number linear in the tokens.
  bool prepared() const { return whole && rank > 0 && reach.window > 0 && reach.band() <= 8 * channels; }

  /// Lays out memory for `rows` queries.
  template <class T>
  AftBias<T> memory(Index rows, MemoryLayout<T>& layout) const {
    AftBias<T> bias;
    // The stride is an odd number of cache lines of floats, so that the elements of a column, which products with E^T
    // read together, are in different cache sets.
    const Index stride = ((reach.band() + 15) / 16 | 1) * 16;
    bias.w = layout.matrix(rows, reach.band(), stride);
    if (reach.by_products()) bias.E = layout.matrix(rows, reach.band(), stride), bias.max_w = layout.matrix(rows, 1);
    return bias;
  }

  template <class T>
  void prepare(std::span<const View<const T>> parameters, const AftBias<T>& bias) const {
    reach.for_each_block<T>(prepared_block(), [&](const AftBlock& b) { make(parameters, b, of_block(bias, b)); });
  }
  template <class T>
  void prepare_backward(std::span<const View<const T>> parameters, const AftBias<T>& bias, const AftBias<T>& dbias,
                        std::span<const View<T>> gradient) const {
    reach.for_each_block<T>(
        [&](const AftBlock& b) { make_backward<T>(parameters, b, of_block(bias, b), of_block(dbias, b), gradient); });
  }

  /// Returns the bias of a block: prepared, or computed in `memory`.
  template <class T>
  AftBias<const T> at(const AftBlock& b, const AttentionInput<T>& in, const AftBias<const T>& all,
                      const AftBias<T>& memory) const {
    return prepared() ? of_block(all, b) : make(in.parameters, b, memory.part(0, b.rows, b.seen));
  }

  /// Returns memory for the gradient of a block's bias: if the bias is prepared, the block's part of `all`; otherwise
  /// `memory`, with dw and dE set to 0. But if w is a parameter, dw is the block's part of the parameter's gradient.
  template <class T>
  AftBias<T> gradient_at(const AftBlock& b, const AttentionGradient<T>& gradient, const AftBias<T>& all,
                         const AftBias<T>& memory) const {
    if (prepared()) return of_block(all, b);
    AftBias<T> dbias = memory.part(0, b.rows, b.seen);
    fill(dbias.E, T(0));
    if (rank > 0)
      fill(dbias.w, T(0));
    else
      dbias.w = of_block(matrix_of(gradient.parameters[0]), b);
    return dbias;
  }

  // Computes dw += E dE, element-wise, as E = exp(w - max w); then du += dw p, dp += dw^T u.
  template <class T>
  void make_backward(std::span<const View<const T>> parameters, const AftBlock& b, const AftBias<const T>& bias,
                     const AftBias<T>& dbias, std::span<const View<T>> gradient) const {
    const Matrix<T> dw = dbias.w;
    if (reach.by_products_in<T>())
      for (Index r = 0; r < b.rows; ++r)
        for (Index s = 0; s < b.seen; ++s) dw(r, s) += bias.E(r, s) * dbias.E(r, s);
    if (rank == 0) return;
    const Matrix<const T> u = matrix_of(parameters[0]), p = matrix_of(parameters[1]);
    kernels::gemm(dw, b.keys(p), Update::accumulate, b.queries(matrix_of(gradient[0])));
    kernels::gemm(transposed(dw), b.queries(u), Update::accumulate, b.keys(matrix_of(gradient[1])));
  }

  /// Returns w of all pairs, [1, N, M]: 0 for keys without a bias, -inf for masked keys.
  Tensor<float> of_pairs(std::span<const View<const float>> parameters) const {
    Tensor<float> pairs(Shape{1, reach.queries, reach.keys});
    std::fill(pairs.begin(), pairs.end(), -std::numeric_limits<float>::infinity());
    for (Index t = 0; t < reach.queries; ++t) {
      const AftReach::Range seen = reach(t);
      const Matrix<float> row(pairs.data() + t * reach.keys, 1, reach.keys);
      const Matrix<float> biased = row.middle_columns(seen.first, seen.last - seen.first);
      fill(row.middle_columns(0, seen.before), 0);
      fill(row.middle_columns(seen.after, reach.keys - seen.after), 0);
      if (biased.columns == 0) continue;
      if (rank > 0)
        kernels::gemm(matrix_of(parameters[0]).middle_rows(t, 1),
                      transposed(matrix_of(parameters[1]).middle_rows(seen.first, biased.columns)), biased);
      else
        std::copy_n(matrix_of(parameters[0])[t] + seen.first, biased.columns, biased.data);
    }
    return pairs;
  }

  /// Returns the cost of w, and of du and dp, for `pairs` pairs of a query and a key.
  Cost cost(Index pairs) const {
    Cost cost;
    cost.forward = product_counts(pairs, 1, rank);
    cost.forward_contractions = product_contractions(pairs, 1, rank);
    cost.backward = cost.backward_contractions = 2 * cost.forward_contractions;  // du, dp accumulated
    return cost;
  }

 private:
  template <class T>
  static Matrix<T> matrix_of(const View<T>& tensor) {
    return {tensor.data(), tensor.shape()[0], tensor.shape()[1]};
  }
  /// Returns the maximum number of queries per block of a preparation: all, if every block would begin with the first
  /// key.
  Index prepared_block() const { return reach.window >= reach.queries ? reach.queries : reach.block(); }

  template <class T>
  static AftBias<T> of_block(const AftBias<T>& all, const AftBlock& b) {
    return all.part(b.first, b.rows, b.seen);
  }
  template <class T>
  static Matrix<T> of_block(Matrix<T> w, const AftBlock& b) {
    return b.queries(w).middle_columns(b.first_key, b.seen);
  }

  template <class T>
  AftBias<const T> make(std::span<const View<const T>> parameters, const AftBlock& b, const AftBias<T>& to) const {
    AftBias<const T> bias = to;
    if (rank > 0)
      kernels::gemm(b.queries(matrix_of(parameters[0])), transposed(b.keys(matrix_of(parameters[1]))), to.w);
    else
      bias.w = of_block(matrix_of(parameters[0]), b);
    if (!reach.by_products_in<T>()) return bias;
    for (Index r = 0; r < b.rows; ++r) {
      const AftReach::Range seen = reach(b.first + r);
      to.max_w(r, 0) = kernels::exp_of_row(bias.w.middle_rows(r, 1), seen.first - b.first_key, seen.last - b.first_key,
                                           to.E.middle_rows(r, 1));
    }
    return bias;
  }
};

}  // namespace heed
