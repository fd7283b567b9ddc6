// Part of Performer (performer.cpp): one head's memory, its features (step 1), and the blocks of queries and keys for
// the other steps.
#pragma once

#include "sums.h"

#include "heed/attention/mechanism_base.h"
#include "heed/base/math.h"
#include "heed/kernels/rows/favor.h"

namespace heed {

/// The saved tensors: features of queries and exps of keys, unless they are recomputed; without `causal`, the sums
/// over all keys. For each query, the index of its largest u, sigma and 1 / den. For each key, c, and the index of its
/// largest u if this u exceeds every u of earlier keys, otherwise -1.
template <class T>
struct PerformerSaved {
  Heads<T> phi, E;      ///< [N, m], [M, m]
  Heads<T> sums;        ///< [1, m e + m + e]
  Heads<T> of_queries;  ///< [3, N]: index, sigma, 1 / den
  Heads<T> of_keys;     ///< [2, M]: c, index
};

/// One head: its slices of the operands and of the saved tensors.
template <class T>
struct PerformerHead {
  const AttentionInput<T>& in;
  const PerformerSaved<T>& saved;
  Index h;
  Matrix<const T> q = in.q[h], k = in.k[h], v = in.v[h];
  Matrix<T> phi = saved.phi[h], E = saved.E[h];  ///< no rows if they are recomputed
  T *query_place = saved.of_queries[h][0], *sigma = saved.of_queries[h][1], *den = saved.of_queries[h][2];
  T *c = saved.of_keys[h][0], *key_place = saved.of_keys[h][1];

  bool keeps_features() const { return phi.rows > 0; }
};

/// A block of queries from `first` on. The first `before` keys are in the sums; the pairs with the `keys` keys from
/// `first` on are computed directly. Without `causal`, the blocks for sums over queries have keys as rows, and all
/// queries are in the sums.
struct PerformerBlock {
  Index first, rows, before, keys;
  bool growing;  ///< true if the block's keys are added to the sums afterwards, for later queries
  bool later;    ///< true if the sums over queries are not empty

  /// Returns the number of the block's keys visible to its row i.
  Index seen(Index i) const { return std::min(i + 1, keys); }
  /// Returns the update for the contribution of the block's key j: assign for the first of all keys.
  Update after(Index j) const { return before + j > 0 ? Update::accumulate : Update::assign; }
  template <class T>
  Matrix<T> rows_of(Matrix<T> x) const {
    return x.middle_rows(first, rows);
  }
  template <class T>
  Matrix<T> keys_of(Matrix<T> x) const {
    return keys > 0 ? x.middle_rows(first, keys) : x.top_rows(0);
  }
  template <class T>
  Matrix<T> pairs(Matrix<T> x) const {
    return {x.data, rows, keys, x.stride};
  }
};

template <class T>
struct PerformerBlocks {
  Index queries, keys;
  bool causal;

  /// Returns the maximum number of rows per block. In a causal block of n rows, a row has up to n pairs of m + e
  /// multiply-adds each, and reads the sums with m e multiply-adds. With Counted, a causal block is one query, so that
  /// blocks do not change the cost of the sums.
  Index rows() const { return !causal ? 128 : std::is_same_v<T, Counted> ? 1 : 64; }

  /// Returns the number of blocks of keys.
  Index of_keys() const { return (keys + rows() - 1) / rows(); }

  std::vector<PerformerBlock> forward() const {
    std::vector<PerformerBlock> list;
    for (Index first = 0; first < queries; first += rows()) {
      const Index count = std::min(rows(), queries - first), own = std::clamp<Index>(keys - first, 0, count);
      const bool last = first + count == queries;
      if (causal)
        list.push_back({first, count, std::min(first, keys), own, own > 0 && !last, !last});
      else
        list.push_back({first, count, keys, 0, false, false});
    }
    return list;
  }

  /// Returns the blocks for sums over queries, last to first.
  std::vector<PerformerBlock> backward() const {
    std::vector<PerformerBlock> list;
    if (causal) list = forward();
    for (Index first = 0; !causal && first < keys; first += rows()) {
      const Index count = std::min(rows(), keys - first);
      list.push_back({first, count, 0, count, false, true});
    }
    std::reverse(list.begin(), list.end());
    return list;
  }

  /// Calls f(head, block) for all heads and blocks: block by block, since the heads of a block are adjacent in memory;
  /// with `causal` head by head, since running sums pass through a head's blocks.
  template <class F>
  void each(Index heads, const std::vector<PerformerBlock>& list, const F& f) const {
    if (causal) {
      for (Index h = 0; h < heads; ++h)
        for (const PerformerBlock& b : list) f(h, b);
    } else {
      for (const PerformerBlock& b : list)
        for (Index h = 0; h < heads; ++h) f(h, b);
    }
  }
};

/// Step 1, the features. `h` and `largest` have an element per row; `products` [rows, d].
struct PerformerFeatures {
  Index m;
  bool causal;

  /// Computes phi, sigma and the indices of maxima of a block's queries.
  template <class T>
  void make_queries(const AttentionInput<T>& in, const PerformerHead<T>& head, const PerformerBlock& b, Matrix<T> phi,
                    T* h, T* largest) const {
    make_products(in, b.rows_of(head.q), phi, h);
    kernels::favor_maxima(scale(in.shape.width), phi, kernels::RowMaxima<T>{largest, head.query_place + b.first});
    kernels::favor_features(scale(in.shape.width), largest, h, performer_tiny, phi, head.sigma + b.first);
  }

  /// Computes E and c of the keys from `first` on, given the c of earlier keys. Without `causal` the keys of a call
  /// share one c: the largest u so far.
  template <class T>
  void make_keys(const AttentionInput<T>& in, const PerformerHead<T>& head, Index first, Matrix<T> E, T* h) const {
    const Index end = first + E.rows;
    make_products(in, head.k.middle_rows(first, E.rows), E, h);
    kernels::favor_maxima(scale(in.shape.width), E, kernels::RowMaxima<T>{head.c + first, head.key_place + first});
    for (Index s = std::max<Index>(first, 1); s < end; ++s) {
      if (head.c[s] > head.c[s - 1]) continue;
      head.c[s] = head.c[s - 1];
      head.key_place[s] = T(-1);
    }
    if (!causal) std::fill(head.c + first, head.c + end, T(head.c[end - 1]));
    kernels::favor_features(scale(in.shape.width), head.c + first, h, 0, E, static_cast<T*>(nullptr));
  }

  /// Recomputes phi of a block's queries from the saved indices of maxima.
  template <class T>
  void make_queries_again(const AttentionInput<T>& in, const PerformerHead<T>& head, const PerformerBlock& b,
                          Matrix<T> phi, T* h, T* largest) const {
    make_products(in, b.rows_of(head.q), phi, h);
    for (Index i = 0; i < b.rows; ++i)
      largest[i] = T(scale(in.shape.width)) * phi(i, as_index(head.query_place[b.first + i]));
    kernels::favor_features(scale(in.shape.width), largest, h, performer_tiny, phi, static_cast<T*>(nullptr));
  }

  /// Recomputes E of keys from the saved c.
  template <class T>
  void make_keys_again(const AttentionInput<T>& in, const PerformerHead<T>& head, Index first, Matrix<T> E,
                       T* h) const {
    make_products(in, head.k.middle_rows(first, E.rows), E, h);
    kernels::favor_features(scale(in.shape.width), head.c + first, h, 0, E, static_cast<T*>(nullptr));
  }

  /// Computes dx (+)= omega^T du / d^(1/4) - g x / d^(1/2) for the rows x; g [rows].
  template <class T>
  void undo_product(const AttentionInput<T>& in, Matrix<const T> x, Matrix<const T> du, const T* g, Matrix<T> products,
                    Update update, Matrix<T> dx) const {
    const T factor(scale(in.shape.width)), square(scale(in.shape.width) * scale(in.shape.width));
    const Matrix<T> product = products.top_rows(x.rows);
    kernels::gemm(du, omega(in), product);
    for (Index i = 0; i < x.rows; ++i) {
      const T along = square * g[i];
      const T *const from = product[i], *const row = x[i];
      T* const to = dx[i];
#pragma GCC ivdep
      for (Index c = 0; c < x.columns; ++c) write(update, to[c], factor * from[c] - along * row[c]);
    }
  }

  /// Computes U = omega x of a single row x [1, d], and `largest`, the maximum of U / d^(1/4). Returns |x'|^2 / 2.
  template <class T>
  T exponents(const AttentionInput<T>& in, Matrix<const T> x, Matrix<T> U, T* largest) const {
    const double factor = scale(in.shape.width);
    T h, place;
    kernels::gemm(x, transposed(omega(in)), U);
    kernels::row_dots(x, x, &h);
    kernels::favor_maxima(factor, U, kernels::RowMaxima<T>{largest, &place});
    return T(factor * factor / 2) * h;
  }

  /// Returns d^(-1/4), the factor of x.
  static double scale(Index width) { return math::pow(static_cast<double>(width), -0.25); }

  /// Returns the counts of computing the features of N queries and M keys of d channels.
  Counts make_counts(Index N, Index M, Index d) const {
    const Index rows = N + M;
    return product_counts(rows, m, d) + kernels::row_dots_counts(rows, d) + Counts{.mul = rows} +
           kernels::favor_maxima_counts(rows, m) + kernels::favor_features_counts(rows, m) +
           Counts{.add = N * (m - 1), .cmp = M - 1};
  }
  /// Returns the counts of recomputing the features from the saved indices of maxima.
  Counts again_counts(Index N, Index M, Index d) const {
    const Index rows = N + M;
    return product_counts(rows, m, d) + kernels::row_dots_counts(rows, d) + Counts{.mul = rows + N} +
           kernels::favor_features_counts(rows, m);
  }
  Counts undo_product_counts(Index rows, Index d) const {
    return product_counts(rows, d, m) + rows * Counts{.mul = 2 * d + 1, .add = d};
  }

 private:
  /// Computes U = omega x and h = |x'|^2 / 2 for the rows x.
  template <class T>
  static void make_products(const AttentionInput<T>& in, Matrix<const T> x, Matrix<T> U, T* h) {
    const double factor = scale(in.shape.width);
    kernels::gemm(x, transposed(omega(in)), U);
    kernels::row_dots(x, x, h);
    for (Index i = 0; i < x.rows; ++i) h[i] = T(factor * factor / 2) * h[i];
  }

  template <class T>
  static Matrix<const T> omega(const AttentionInput<T>& in) {
    return as_matrix(in.parameters[0]);
  }
};

}  // namespace heed
