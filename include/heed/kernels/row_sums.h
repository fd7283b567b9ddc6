// Matrices divided by the roots of their row sums: D^-1/2 S D^-1/2.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/update.h"

#include <cmath>

namespace heed::kernels {

/// Sums below this are taken for it, and for constant.
inline constexpr double least_row_sum = 1e-6;

/// 1 / sqrt(max(sum, least_row_sum)). Counts: 1 cmp, 1 sqrt, 1 div.
template <class T>
T inverse_root(T sum) {
  using std::sqrt;
  return T(1) / sqrt(sum < T(least_row_sum) ? T(least_row_sum) : sum);
}

/// y (+)= D^-1/2 x, row by row, for D [n] and x, y [n, e] with rows x_stride and y_stride apart. y may be x.
/// Counts per row: e mul and inverse_root(); e add more to accumulate.
template <class T>
void scale_rows(Index n, Index e, const T* D, const T* x, Index x_stride, Update update, T* y, Index y_stride) {
  for (Index i = 0; i < n; ++i) {
    const T root = inverse_root(D[i]);
    for (Index c = 0; c < e; ++c) write(update, y[i * y_stride + c], root * x[i * x_stride + c]);
  }
}

/// The gradient of the row sums in out = r (S (r v)), r = D^-1/2. With w = r v and dw = S^T (r dout), row by row
///   r dr = dout.out + dw.w,   dD = -r^3 dr / 2 = -(dout.out + dw.w) / (2 D),   or 0 where D was clamped.
/// out, dout [n, e] with rows out_stride and dout_stride apart; w, dw [n, e].
/// Counts per row: 2e + 1 mul, 2e - 1 add, 1 div, 1 cmp.
template <class T>
void row_sums_backward(Index n, Index e, const T* D, const T* out, Index out_stride, const T* dout, Index dout_stride,
                       const T* w, const T* dw, T* dD) {
  for (Index i = 0; i < n; ++i) {
    T sum(0);
    for (Index c = 0; c < e; ++c) {
      const T term = dout[i * dout_stride + c] * out[i * out_stride + c] + dw[i * e + c] * w[i * e + c];
      if (c == 0)
        sum = term;
      else
        sum += term;
    }
    const T slope = T(-0.5) * sum / D[i];
    dD[i] = D[i] < T(least_row_sum) ? T(0) : slope;
  }
}

/// scaled = E^-1/2 X E^-1/2 for X [m, m] and E the row sums of A [m, m], which are positive: no clamp. Leaves E^-1/2
/// in root [m]. Counts: scale_inverse_cost().
template <class T>
void scale_inverse(Index m, const T* A, const T* X, T* scaled, T* root) {
  using std::sqrt;
  for (Index i = 0; i < m; ++i) {
    T sum = A[i * m];
    for (Index j = 1; j < m; ++j) sum += A[i * m + j];
    root[i] = T(1) / sqrt(sum);
  }
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) scaled[i * m + j] = root[i] * X[i * m + j] * root[j];
}

/// In place, the gradient at X from that at scaled: dX_ij *= E_i^-1/2 E_j^-1/2. And, as E_i scales a row and a column,
///   dE_i = -sum_j (dscaled_ij scaled_ij + dscaled_ji scaled_ji) / (2 E_i)
/// in dE [m], which each element of row i of dA gets besides. root as scale_inverse() left it.
/// Counts: scale_inverse_cost().
template <class T>
void scale_inverse_backward(Index m, const T* root, const T* scaled, T* dX, T* dE) {
  for (Index i = 0; i < m; ++i) {
    T sum(0);
    for (Index j = 0; j < m; ++j) {
      const T term = dX[i * m + j] * scaled[i * m + j] + dX[j * m + i] * scaled[j * m + i];
      if (j == 0)
        sum = term;
      else
        sum += term;
    }
    dE[i] = T(-0.5) * sum * (root[i] * root[i]);
  }
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) dX[i * m + j] = root[i] * dX[i * m + j] * root[j];
}

/// Of the two above and of adding dE to dA.
inline Cost scale_inverse_cost(Index m) {
  Cost cost;
  cost.forward = {.mul = 2 * m * m, .add = m * (m - 1), .div = m, .sqrt = m};
  cost.backward = {.mul = 4 * m * m + 3 * m, .add = 3 * m * m - m};
  return cost;
}

/// Of D^-1/2 (S (D^-1/2 v)) beside its two products with S: two scalings forward, three and the gradient of D backward.
inline Cost row_sums_cost(Index n, Index e) {
  const Counts scaling = n * Counts{.mul = e, .div = 1, .sqrt = 1, .cmp = 1};
  Cost cost;
  cost.forward = 2 * scaling;
  cost.backward = 3 * scaling + n * Counts{.mul = 2 * e + 1, .add = 2 * e - 1, .div = 1, .cmp = 1};
  return cost;
}

}  // namespace heed::kernels
