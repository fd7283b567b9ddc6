// Part of Performer (performer.cpp): sums over keys, shared by many queries, and, in the backward pass, sums over
// queries, shared by many keys.
//
// A row i, a key or a query, has features f_i [m], a value x_i [e], weights a_i and b_i, and a decay r_i. Sums over
// rows
//
//   P = sum_i r_i f_i x_i^T  [m, e],   p = sum_i r_i a_i f_i  [m],   V = sum_i b_i x_i  [e]
//
// give for another row, with its own f, x, a, b and r,
//
//   values    r (P^T f) + tiny b V
//   features  r (P x + a p)
//
//            rows are      f                     x      a      b
//   forward  keys          exps E                v      1      1
//   read by  queries       features phi          G      delta  sigma
//   backward queries       phi                   G      delta  sigma
//   read by  keys          E                     v      1      1
//
// where G = dout / den, delta = -<dout, out> / den and sigma = sum_j phi_j.
#pragma once

#include "heed/base/memory_layout.h"
#include "heed/kernels/products/gemm.h"
#include "heed/kernels/rows/rows.h"

namespace heed {

/// Constant added to each exp to get a feature.
inline constexpr double performer_tiny = 1e-4;

/// Rows with their features and values. a, b and decay [rows]; null stands for ones.
template <class T>
struct PerformerRows {
  Matrix<const T> f, x;
  const T *a = nullptr, *b = nullptr, *decay = nullptr;

  Index count() const { return f.rows; }
  PerformerRows middle_rows(Index first, Index count) const {
    const auto from = [&](const T* numbers) { return numbers ? numbers + first : nullptr; };
    return {f.middle_rows(first, count), x.middle_rows(first, count), from(a), from(b), from(decay)};
  }
};

template <class T>
struct PerformerSums {
  Matrix<T> P, p, V;  ///< [m, e], [1, m], [1, e]

  PerformerSums(Index m, Index e, MemoryLayout<T>& layout)
      : P(layout.matrix(m, e)), p(layout.matrix(1, m)), V(layout.matrix(1, e)) {}

  /// Returns the sums stored in `memory`, size(m, e) elements.
  static PerformerSums in(T* memory, Index m, Index e) {
    MemoryLayout<T> layout(memory);
    return {m, e, layout};
  }
  static Index size(Index m, Index e) { return m * e + m + e; }

  /// Computes the sums over `rows`, which have no decays, or adds them to the existing sums.
  void add(const PerformerRows<T>& rows, Update update) const {
    kernels::gemm(transposed(rows.f), rows.x, update, P);
    weighted_sum(rows.a, rows.f, update, p);
    weighted_sum(rows.b, rows.x, update, V);
  }

  /// Multiplies P and p by a decay.
  void scale(T decay) const {
    for (const Matrix<T>& sum : {P, p})
      for (T *s = sum.data, *const end = s + sum.size(); s < end; ++s) *s *= decay;
  }

  /// Multiplies P and p by `before` and adds the sums over `rows`, which have decays; without `others`, computes the
  /// sums over `rows` only. x [rows, e] and weights [rows] are scratch memory.
  void add(const PerformerRows<T>& rows, bool others, T before, Matrix<T> x, T* weights) const {
    const Index n = rows.count();
    for (Index i = 0; i < n; ++i) {
      for (Index c = 0; c < x.columns; ++c) x(i, c) = rows.decay[i] * rows.x(i, c);
      weights[i] = rows.a ? rows.decay[i] * rows.a[i] : rows.decay[i];
    }
    if (others) scale(before);
    const Update update = others ? Update::accumulate : Update::assign;
    kernels::gemm(transposed(rows.f), x.top_rows(n), update, P);
    weighted_sum(weights, rows.f, update, p);
    weighted_sum(rows.b, rows.x, update, V);
  }

  /// Computes y_i (+)= r_i (P^T f_i) + tiny b_i V. `product` [rows, e] is scratch memory.
  void values(const PerformerRows<T>& rows, Update update, Matrix<T> product, Matrix<T> y) const {
    if (update == Update::assign) product = y;
    kernels::gemm(rows.f, P, product.top_rows(rows.count()));
    for (Index i = 0; i < rows.count(); ++i) {
      const T tiny = rows.b ? T(performer_tiny) * rows.b[i] : T(performer_tiny);
      const T *const from = product[i], *const v = V.data;
      T* const to = y[i];
#pragma GCC ivdep
      for (Index c = 0; c < y.columns; ++c) {
        const T value = rows.decay ? rows.decay[i] * from[c] : from[c];
        write(update, to[c], value + tiny * v[c]);
      }
    }
  }

  /// Computes df_i (+)= r_i (P x_i + a_i p). `product` [rows, m] is scratch memory.
  void features(const PerformerRows<T>& rows, Update update, Matrix<T> product, Matrix<T> df) const {
    if (update == Update::assign) product = df;
    kernels::gemm(rows.x, transposed(P), product.top_rows(rows.count()));
    for (Index i = 0; i < rows.count(); ++i) {
      const T *const from = product[i], *const sum = p.data;
      T* const to = df[i];
#pragma GCC ivdep
      for (Index j = 0; j < df.columns; ++j) {
        const T gradient = from[j] + (rows.a ? rows.a[i] * sum[j] : sum[j]);
        write(update, to[j], rows.decay ? rows.decay[i] * gradient : gradient);
      }
    }
  }

 private:
  static void weighted_sum(const T* weights, Matrix<const T> rows, Update update, Matrix<T> sum) {
    if (weights)
      kernels::gemm(Matrix<const T>(weights, 1, rows.rows), rows, update, sum);
    else
      kernels::column_sums(rows, update, sum.data);
  }
};

/// Sizes of a set of rows, and the costs of their sums.
struct PerformerRowsCost {
  Index rows, m, e;
  bool weighted;  ///< rows have a and b

  Counts assign() const { return product_counts(m, e, rows) + weighted_sum(m) + weighted_sum(e); }
  Counts add(bool others) const {
    Counts counts = Counts{.mul = rows * (e + weighted)} + product_counts(m, e, rows) + product_counts(1, m, rows) +
                    weighted_sum(e);
    if (others) counts += Counts{.mul = m * e + m, .add = m * e + m + e};
    return counts;
  }
  /// Returns the counts for Update::assign; accumulating takes one more addition per element.
  Counts values(bool decays) const {
    return product_counts(rows, e, m) + Counts{.mul = rows * (e * (1 + decays) + weighted), .add = rows * e};
  }
  Counts features(bool decays) const {
    return product_counts(rows, m, e) + Counts{.mul = rows * m * (weighted + decays), .add = rows * m};
  }

 private:
  Counts weighted_sum(Index n) const { return weighted ? product_counts(1, n, rows) : n * sum_counts(rows); }
};

}  // namespace heed
