// Token features: the positive part of a token, multiplied by each of a few weights.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/elements/activation.h"

namespace heed::kernels {

/// Computes f[i, a n + c] = w[i,a] max(x[i,c], 0) for x [rows, n], w [rows, weights], f [rows, weights n]; if w is
/// empty, f is max(x, 0). Nothing may overlap.
template <class T>
void weighted_relu(MatrixFor<T> x, MatrixFor<T> w, Matrix<T> f) {
  const Index n = x.columns;
  for (Index i = 0; i < x.rows; ++i) {
    relu_forward(n, x[i], f[i]);
    for (Index a = w.columns - 1; a >= 0; --a)
      for (Index c = 0; c < n; ++c) f(i, a * n + c) = w(i, a) * f(i, c);
  }
}

/// Returns the counts for `rows` rows of n values with `weights` weights each.
inline Counts weighted_relu_counts(Index rows, Index n, Index weights) {
  return rows * (relu_forward_counts(n) + Counts{.mul = weights * n});
}

/// Computes dx[i,c] (+)= sum over a of w[i,a] df[i, a n + c], or df[i,c] if w is empty, where x > 0; relu'(0) = 0.
/// Overwrites the first n columns of df.
template <class T>
void weighted_relu_backward(MatrixFor<T> x, MatrixFor<T> w, Matrix<std::type_identity_t<T>> df, Update update,
                            Matrix<T> dx) {
  const Index n = x.columns;
  for (Index i = 0; i < x.rows; ++i) {
    T* const sum = df[i];
    for (Index a = 0; a < w.columns; ++a)
      for (Index c = 0; c < n; ++c) write(term_update(a), sum[c], w(i, a) * df(i, a * n + c));
    relu_backward(n, x[i], sum, update, dx[i]);
  }
}

/// Returns the counts for Update::assign.
inline Counts weighted_relu_backward_counts(Index rows, Index n, Index weights) {
  return rows * (product_counts(1, n, weights) + relu_backward_counts(n));
}

}  // namespace heed::kernels
