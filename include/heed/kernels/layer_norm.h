// Layer normalisation of rows. Ba, Kiros, Hinton, "Layer normalization", arXiv:1607.06450.
//
// Matrices are [rows, n], their rows `stride` >= n apart; gamma and beta [n]; mean and scale [rows]. Of each row,
// scale = 1 / sqrt(variance + eps), the variance (divisor n) computed from centred values, and xn = (x - mean) scale.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace heed::kernels {

/// y = gamma xn + beta, and + residual unless that is nullptr; writes mean and scale. y may be x or residual. The
/// relative error of centred values, and so of the results before beta is added, grows with |mean| scale.
/// Counts: layer_norm_forward_counts(); with a residual n add more per row.
template <class T>
void layer_norm_forward(Index rows, Index n, Index stride, const T* x, const T* gamma, const T* beta, double eps,
                        std::type_identity_t<const T*> residual, T* y, T* mean, T* scale) {
  using std::sqrt;
  for (Index r = 0; r < rows; ++r, x += stride, y += stride) {
    T sum = x[0];
    for (Index i = 1; i < n; ++i) sum += x[i];
    mean[r] = sum / T(static_cast<double>(n));

    const T first = x[0] - mean[r];
    T squares = first * first;
    for (Index i = 1; i < n; ++i) {
      const T centred = x[i] - mean[r];
      squares += centred * centred;
    }
    scale[r] = T(1) / sqrt(squares / T(static_cast<double>(n)) + T(eps));

    for (Index i = 0; i < n; ++i) {
      const T normed = (x[i] - mean[r]) * scale[r] * gamma[i] + beta[i];
      y[i] = residual ? normed + residual[r * stride + i] : normed;
    }
  }
}

/// y = gamma xn + beta once more, by the means and scales that layer_norm_forward found: the same bits. y may be x.
/// Counts: layer_norm_again_counts().
template <class T>
void layer_norm_again(Index rows, Index n, Index stride, const T* x, const T* gamma, const T* beta, const T* mean,
                      const T* scale, T* y) {
  for (Index r = 0; r < rows; ++r, x += stride, y += stride)
    for (Index i = 0; i < n; ++i) y[i] = (x[i] - mean[r]) * scale[r] * gamma[i] + beta[i];
}

/// With g = gamma dy:
///   dx (+)= scale (g - mean(g) - xn mean(g xn)),
/// since the mean and the variance of the row move with each of its elements. dx may be dy.
/// Counts: layer_norm_backward_counts(); n add more per row to accumulate.
template <class T>
void layer_norm_backward(Index rows, Index n, Index stride, const T* x, const T* gamma, const T* mean, const T* scale,
                         const T* dy, Update update, T* dx) {
  for (Index r = 0; r < rows; ++r, x += stride, dy += stride, dx += stride) {
    T sum(0), product_sum(0);
    for (Index i = 0; i < n; ++i) {
      const T g = gamma[i] * dy[i];
      const T product = g * ((x[i] - mean[r]) * scale[r]);
      if (i == 0)
        sum = g, product_sum = product;
      else
        sum += g, product_sum += product;
    }
    const T mean_g = sum / T(static_cast<double>(n)), mean_product = product_sum / T(static_cast<double>(n));
    for (Index i = 0; i < n; ++i) {
      const T normalized = (x[i] - mean[r]) * scale[r];
      write(update, dx[i], scale[r] * (gamma[i] * dy[i] - mean_g - normalized * mean_product));
    }
  }
}

/// dgamma (+)= sum over rows of dy xn, dbeta (+)= sum over rows of dy. Counts: layer_norm_parameter_counts(); 2n add
/// more to accumulate.
template <class T>
void layer_norm_parameter_gradients(Index rows, Index n, Index stride, const T* x, const T* mean, const T* scale,
                                    const T* dy, Update update, T* dgamma, T* dbeta) {
  if (rows == 0 && update == Update::assign) std::fill_n(dgamma, n, T(0)), std::fill_n(dbeta, n, T(0));
  for (Index r = 0; r < rows; ++r, x += stride, dy += stride) {
    const Update row_update = r == 0 ? update : Update::accumulate;
    for (Index i = 0; i < n; ++i) {
      write(row_update, dgamma[i], dy[i] * ((x[i] - mean[r]) * scale[r]));
      write(row_update, dbeta[i], dy[i]);
    }
  }
}

/// What the functions above execute, when they assign.
inline Counts layer_norm_forward_counts(Index rows, Index n) {
  return rows * Counts{.mul = 3 * n, .add = 5 * n - 1, .div = 3, .sqrt = 1};
}
inline Counts layer_norm_again_counts(Index rows, Index n) { return rows * n * Counts{.mul = 2, .add = 2}; }
inline Counts layer_norm_backward_counts(Index rows, Index n) {
  return rows * Counts{.mul = 7 * n, .add = 6 * n - 2, .div = 2};
}
inline Counts layer_norm_parameter_counts(Index rows, Index n) {
  return {.mul = 2 * rows * n, .add = rows * n + 2 * std::max<Index>(rows - 1, 0) * n};
}

#ifndef HEED_REFERENCE
void layer_norm_forward(Index rows, Index n, Index stride, const float* x, const float* gamma, const float* beta,
                        double eps, const float* residual, float* y, float* mean, float* scale);
void layer_norm_again(Index rows, Index n, Index stride, const float* x, const float* gamma, const float* beta,
                      const float* mean, const float* scale, float* y);
void layer_norm_backward(Index rows, Index n, Index stride, const float* x, const float* gamma, const float* mean,
                         const float* scale, const float* dy, Update update, float* dx);
void layer_norm_parameter_gradients(Index rows, Index n, Index stride, const float* x, const float* mean,
                                    const float* scale, const float* dy, Update update, float* dgamma, float* dbeta);
#endif

}  // namespace heed::kernels
