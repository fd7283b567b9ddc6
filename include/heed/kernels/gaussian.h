// Squared distances, the Gaussian kernel matrix between two sets of rows, and products with it.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/exp.h"
#include "heed/kernels/gemm_by_stride.h"

#include <cmath>

namespace heed::kernels {

/// out[i,j] = sum_c (x[i,c] - y[j,c])^2 for the m rows of x and the n rows of y, of d numbers each; rows of x, y and
/// out are x_stride, y_stride and out_stride apart. x and y may be the same rows; out overlaps neither. The differences
/// are squared, never the square expanded: |x|^2 + |y|^2 - 2 x.y cancels where rows are close or far from the origin,
/// and may turn negative. So equal rows are at distance 0, out is symmetric where x = y to the last bit, and the
/// relative error is at most (d + 2) eps, whatever the rows. Finite where |x - y| < sqrt(largest / d). Counts per pair:
/// d mul, 2d - 1 add.
template <class T>
void squared_distances(Index m, Index n, Index d, const T* x, Index x_stride, const T* y, Index y_stride, T* out,
                       Index out_stride) {
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const T *const a = x + i * x_stride, *const b = y + j * y_stride;
      const T first = a[0] - b[0];
      T sum = first * first;
      for (Index c = 1; c < d; ++c) {
        const T difference = a[c] - b[c];
        sum += difference * difference;
      }
      out[i * out_stride + j] = sum;
    }
}

#ifndef HEED_REFERENCE
void squared_distances(Index m, Index n, Index d, const float* x, Index x_stride, const float* y, Index y_stride,
                       float* out, Index out_stride);
#endif

/// g[i,j] = exp(-scale |x_i - y_j|^2), shapes and overlap as above, scale > 0. In [0, 1], also where the distance
/// overflows; 1 for equal rows.
/// Counts per pair: d + 1 mul, 2d - 1 add, 1 exp.
template <class T>
void gaussian(Index m, Index n, Index d, const T* x, Index x_stride, const T* y, Index y_stride, double scale, T* g,
              Index g_stride) {
  squared_distances(m, n, d, x, x_stride, y, y_stride, g, g_stride);
  const bool gaps = g_stride > n;  // without, all rows are one
  const Index rows = gaps ? m : 1, columns = gaps ? n : m * n;
  for (Index i = 0; i < rows; ++i)
    for (Index j = 0; j < columns; ++j) g[i * g_stride + j] = exp(T(-scale) * g[i * g_stride + j]);
}

/// The gradient of gaussian(). As d exp(-s |x - y|^2) / dx = -2 s exp(-s |x - y|^2) (x - y),
///   w[i,j] = -2 scale g[i,j] dg[i,j],   dx_i (+)= sum_j w[i,j] (x_i - y_j),   dy_j (+)= sum_i w[i,j] (y_j - x_i).
/// g is what gaussian() left, dg [m,n] has its stride. Either of dx and dy may be nullptr. dx and dy overlap nothing
/// else, nor each other: where x and y are the same rows, give dy = nullptr and dg + dg^T for dg.
/// Differences are summed one by one, for the reason above: x_i sum_j w - sum_j w y_j would lose them.
/// Counts: gaussian_cost().
template <class T>
void gaussian_backward(Index m, Index n, Index d, const T* x, Index x_stride, const T* y, Index y_stride, double scale,
                       const T* g, const T* dg, Index g_stride, Update update_x, T* dx, Index dx_stride,
                       Update update_y, T* dy, Index dy_stride) {
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < n; ++j) {
      const T *const a = x + i * x_stride, *const b = y + j * y_stride;
      const T w = T(-2 * scale) * (g[i * g_stride + j] * dg[i * g_stride + j]);
      const Update update_a = j == 0 ? update_x : Update::accumulate, update_b = i == 0 ? update_y : Update::accumulate;
      for (Index c = 0; c < d; ++c) {
        const T step = w * (a[c] - b[c]);
        if (dx) write(update_a, dx[i * dx_stride + c], step);
        if (dy) write(update_b, dy[j * dy_stride + c], -step);
      }
    }
}

#ifndef HEED_REFERENCE
void gaussian_backward(Index m, Index n, Index d, const float* x, Index x_stride, const float* y, Index y_stride,
                       double scale, const float* g, const float* dg, Index g_stride, Update update_x, float* dx,
                       Index dx_stride, Update update_y, float* dy, Index dy_stride);
#endif

/// Of gaussian() and gaussian_backward() with both gradients assigned, or with `only_x` that of x added to what is
/// there. A squared distance term contracts 1 mul and 2 add, its gradient 1 mul, 1 sub and 1 add for each of dx and dy.
inline Cost gaussian_cost(Index m, Index n, Index d, bool only_x) {
  Cost cost;
  cost.forward = m * n * Counts{.mul = d + 1, .add = 2 * d - 1, .exp = 1};
  cost.backward = {.mul = m * n * (d + 2), .add = only_x ? 2 * m * n * d : 3 * m * n * d - (m + n) * d};
  cost.forward_contractions = m * n * d * Counts{.mul = 1, .add = 2};
  cost.backward_contractions = m * n * d * Counts{.mul = 1, .add = only_x ? 2 : 3};
  cost.attention_exp = m * n;
  return cost;
}

/// Rows of G that the products below make at once: for n = 4096, two blocks of 64 float rows are 2 MB.
inline constexpr Index gaussian_block = 64;
inline Index gaussian_product_scratch(Index n, Index d) { return gaussian_block * (2 * n + d); }

/// out = G v with G = gaussian(x, x) for the n rows of x, in blocks of rows. v, out [n, e], no overlap.
/// scratch [gaussian_product_scratch(n, d)]. Counts: gaussian_product_cost().
template <class T>
void gaussian_product(Index n, Index d, Index e, const T* x, Index x_stride, double scale, const T* v, Index v_stride,
                      T* out, Index out_stride, T* scratch) {
  for (Index first = 0; first < n; first += gaussian_block) {
    const Index rows = std::min(gaussian_block, n - first);
    gaussian(rows, n, d, x + first * x_stride, x_stride, x, x_stride, scale, scratch, n);
    gemm(Transpose::no, Transpose::no, rows, e, n, scratch, n, v, v_stride, Update::assign, out + first * out_stride,
         out_stride);
  }
}

/// dv (+)= G^T dout = G dout, and dx (+)= the gradient through dG = dout v^T. dv may be nullptr.
/// Counts: gaussian_product_cost().
template <class T>
void gaussian_product_backward(Index n, Index d, Index e, const T* x, Index x_stride, double scale, const T* v,
                               Index v_stride, const T* dout, Index dout_stride, Update update_v, T* dv,
                               Index dv_stride, Update update_x, T* dx, Index dx_stride, T* scratch) {
  T *const G = scratch, *const dG = G + gaussian_block * n, *const dx_rows = dG + gaussian_block * n;
  for (Index first = 0; first < n; first += gaussian_block) {
    const Index rows = std::min(gaussian_block, n - first);
    const T* const block = x + first * x_stride;
    gaussian(rows, n, d, block, x_stride, x, x_stride, scale, G, n);
    if (dv)
      gemm(Transpose::no, Transpose::no, rows, e, n, G, n, dout, dout_stride, update_v, dv + first * dv_stride,
           dv_stride);
    gemm(Transpose::no, Transpose::yes, rows, n, e, dout + first * dout_stride, dout_stride, v, v_stride,
         Update::assign, dG, n);
    gaussian_backward(rows, n, d, block, x_stride, x, x_stride, scale, G, dG, n, Update::assign, dx_rows, d,
                      first == 0 ? update_x : Update::accumulate, dx, dx_stride);
    for (Index i = 0; i < rows; ++i)
      for (Index c = 0; c < d; ++c) dx[(first + i) * dx_stride + c] += dx_rows[i * d + c];
  }
}

/// With dx and dv assigned, or with `only_x` dx added to what is there and no dv.
inline Cost gaussian_product_cost(Index n, Index d, Index e, bool only_x) {
  Cost cost = gaussian_cost(n, n, d, false);
  cost.backward += cost.forward + product_counts(n, n, e) + Counts{.add = only_x ? 2 * n * d : n * d} +
                   (only_x ? Counts{} : product_counts(n, e, n));
  cost.forward += product_counts(n, e, n);
  cost.forward_contractions += product_contractions(n, e, n);
  cost.backward_contractions += (only_x ? 1 : 2) * product_contractions(n, e, n);  // making G again is not counted
  return cost;
}

}  // namespace heed::kernels
