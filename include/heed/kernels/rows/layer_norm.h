// Layer normalisation of rows. Ba, Kiros, Hinton, "Layer normalization", arXiv:1607.06450.
//
// Matrices are [rows, n], gamma and beta [n]. For each row, xn = (x - mean) scale with
// scale = 1 / sqrt(variance + eps). The variance has divisor n and is computed from the centred values. statistics
// [rows, 2] holds mean and scale of each row.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

#include <cmath>

namespace heed::kernels {

/// Parameters of the normalised row gamma xn + beta.
template <class T>
struct RowNorm {
  const T *gamma, *beta;
  double eps;
};

inline namespace reference {

/// Computes y = gamma xn + beta + residual, and writes the statistics. residual may be empty; y may be x or residual.
/// Centred values have the rounding error of the mean. Fast float, with u = 2^-24: error of y at most
/// (n + 8) u (1 + |xn|) (1 + max |x| scale) |gamma| and, for the additions, 4 u (|beta| + |residual|); error of the
/// mean at most (n + 8) u max |x|; relative error of scale at most (n + 8) u (1 + max |x| scale).
template <class T>
void layer_norm_forward(const RowNorm<std::type_identity_t<T>>& norm, MatrixFor<T> x, MatrixFor<T> residual,
                        Matrix<T> y, Matrix<std::type_identity_t<T>> statistics) {
  using std::sqrt;
  const Index n = x.columns;
  for (Index r = 0; r < x.rows; ++r) {
    const T* const row = x[r];
    T &mean = statistics(r, 0), &scale = statistics(r, 1);
    T sum = row[0];
    for (Index i = 1; i < n; ++i) sum += row[i];
    mean = sum / T(static_cast<double>(n));

    const T first = row[0] - mean;
    T squares = first * first;
    for (Index i = 1; i < n; ++i) {
      const T centred = row[i] - mean;
      squares += centred * centred;
    }
    scale = T(1) / sqrt(squares / T(static_cast<double>(n)) + T(norm.eps));

    for (Index i = 0; i < n; ++i) {
      const T normed = (row[i] - mean) * scale * norm.gamma[i] + norm.beta[i];
      y(r, i) = residual ? normed + residual(r, i) : normed;
    }
  }
}

/// Recomputes y = gamma xn + beta from the statistics of layer_norm_forward(), with bitwise equal results. y may be x.
/// Fast float: error at most 2^-21 relative to |gamma xn| + |beta|.
template <class T>
void layer_norm_again(const RowNorm<std::type_identity_t<T>>& norm, MatrixFor<T> x, MatrixFor<T> statistics,
                      Matrix<T> y) {
  for (Index r = 0; r < x.rows; ++r)
    for (Index i = 0; i < x.columns; ++i)
      y(r, i) = (x(r, i) - statistics(r, 0)) * statistics(r, 1) * norm.gamma[i] + norm.beta[i];
}

/// Computes the gradient of x. With g = gamma dy:
///   dx (+)= scale (g - mean(g) - xn mean(g xn)),
/// since the mean and variance of a row depend on all its elements. dx may be dy. Fast float: error at most
/// (n + 8) 2^-23 relative to scale (|g| + mean |g| + |xn| mean |g xn|) and the previous value.
template <class T>
void layer_norm_backward(const std::type_identity_t<T>* gamma, MatrixFor<T> x, MatrixFor<T> statistics, MatrixFor<T> dy,
                         Update update, Matrix<T> dx) {
  const Index n = x.columns;
  for (Index r = 0; r < x.rows; ++r) {
    const T mean = statistics(r, 0), scale = statistics(r, 1);
    T sum(0), product_sum(0);
    for (Index i = 0; i < n; ++i) {
      const T g = gamma[i] * dy(r, i);
      const T product = g * ((x(r, i) - mean) * scale);
      write(term_update(i), sum, g);
      write(term_update(i), product_sum, product);
    }
    const T mean_g = sum / T(static_cast<double>(n)), mean_product = product_sum / T(static_cast<double>(n));
    for (Index i = 0; i < n; ++i) {
      const T normalized = (x(r, i) - mean) * scale;
      write(update, dx(r, i), scale * (gamma[i] * dy(r, i) - mean_g - normalized * mean_product));
    }
  }
}

/// Computes dgamma (+)= sum over rows of dy xn in the first row of sums [2, n], and dbeta (+)= sum over rows of dy in
/// the second. Fast float: error at most (rows + 4) 2^-23 relative to the sum of absolute values, including that of the
/// previous value.
template <class T>
void layer_norm_parameter_gradients(MatrixFor<T> x, MatrixFor<T> statistics, MatrixFor<T> dy, Update update,
                                    Matrix<T> sums) {
  if (x.rows == 0 && update == Update::assign) fill(sums, T(0));
  for (Index r = 0; r < x.rows; ++r) {
    const Update row_update = term_update(r, update);
    for (Index i = 0; i < x.columns; ++i) {
      write(row_update, sums(0, i), dy(r, i) * ((x(r, i) - statistics(r, 0)) * statistics(r, 1)));
      write(row_update, sums(1, i), dy(r, i));
    }
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void layer_norm_forward(const RowNorm<float>& norm, Matrix<const float> x, Matrix<const float> residual,
                        Matrix<float> y, Matrix<float> statistics);
void layer_norm_again(const RowNorm<float>& norm, Matrix<const float> x, Matrix<const float> statistics,
                      Matrix<float> y);
void layer_norm_backward(const float* gamma, Matrix<const float> x, Matrix<const float> statistics,
                         Matrix<const float> dy, Update update, Matrix<float> dx);
void layer_norm_parameter_gradients(Matrix<const float> x, Matrix<const float> statistics, Matrix<const float> dy,
                                    Update update, Matrix<float> sums);
#endif

/// Returns the counts for `rows` rows of n values.
inline Counts layer_norm_forward_counts(Index rows, Index n, bool residual = false) {
  return rows * Counts{.mul = 3 * n, .add = 5 * n - 1 + (residual ? n : 0), .div = 3, .sqrt = 1};
}

/// Returns the counts for `rows` rows of n values.
inline Counts layer_norm_again_counts(Index rows, Index n) { return rows * n * Counts{.mul = 2, .add = 2}; }

/// Returns the counts for Update::assign; accumulating takes n more additions per row.
inline Counts layer_norm_backward_counts(Index rows, Index n) {
  return rows * Counts{.mul = 7 * n, .add = 6 * n - 2, .div = 2};
}

/// Returns the counts for Update::assign; accumulating takes 2 n more additions.
inline Counts layer_norm_parameter_counts(Index rows, Index n) {
  return rows * n * Counts{.mul = 2, .add = 1} + 2 * n * sum_counts(rows);
}

}  // namespace heed::kernels
