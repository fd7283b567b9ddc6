// l1 distances between the rows of two matrices, and the gradients that adder networks use for them.
#pragma once

#include "heed/kernels/gemm_by_stride.h"
#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

#include <algorithm>
#include <cmath>

namespace heed {

/// What stands for the derivative of |u| in a backward pass: sign(u), with sign(0) = 0, its derivative proper;
/// clamp(u, -1, 1), that of the Huber function (u^2 / 2 up to 1, |u| - 1/2 beyond); u itself, that of u^2 / 2.
enum class DistanceGradient { sign, hardtanh, full };

namespace kernels {

/// s[r,c] (+)= -sum_i |x[r,i] - w[c,i]|.
///
/// x [rows, width], w [columns, width], s [rows, columns], their rows `ldx`, `ldw`, `lds` apart; s overlaps neither
/// operand, width >= 1. Finite wherever the distance is. Relative error at most width eps: all terms have one sign.
/// Counts per element of s: 2 width - 1 add, width cmp; 1 add more to accumulate.
template <class T>
void negative_l1(Index rows, Index columns, Index width, const T* x, Index ldx, const T* w, Index ldw, Update update,
                 T* s, Index lds) {
  using std::abs;
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) {
      const T *const xr = x + r * ldx, *const wc = w + c * ldw;
      T sum = abs(xr[0] - wc[0]);
      for (Index i = 1; i < width; ++i) sum += abs(xr[i] - wc[i]);
      write(update, s[r * lds + c], -sum);
    }
}

/// s[r,c] = bias[c] - sum_i |x[r,i] - w[c,i]|, bias nullptr for zeros, where rows lie so near the origin that the
/// distance may be taken from maxima, |x - w| = 2 max(x, w) - x - w: as fast as a matrix product, where a difference
/// and its absolute value take almost twice as long. Fast float: the error is at most 2 width eps (|x|_1 + |w|_1) + 3
/// eps |bias|, which says little of rows that are close to each other but far from the origin. Counts as negative_l1,
/// the textbook's way, that adds to the bias.
template <class T>
void negative_l1_by_maxima(Index rows, Index columns, Index width, const T* x, Index ldx, const T* w, Index ldw,
                           const T* bias, T* s, Index lds) {
  for (Index r = 0; r < rows && bias; ++r) std::copy(bias, bias + columns, s + r * lds);
  negative_l1(rows, columns, width, x, ldx, w, ldw, bias ? Update::accumulate : Update::assign, s, lds);
}

/// g f(u) for f = sign: no product is needed. Counts 2 cmp.
template <class T>
T pull_sign(T g, T u) {
  const bool above = u > T(0), below = u < T(0);
  return above ? g : below ? -g : T(0);
}

/// g f(u) for f = clamp(u, -1, 1). Counts 2 cmp, 1 mul.
template <class T>
T pull_hardtanh(T g, T u) {
  const T low = u < T(-1) ? T(-1) : u;
  return g * (low > T(1) ? T(1) : low);
}

namespace detail {

template <class T, class Pull>
void l1_gradient(Index rows, Index terms, Index width, const T* x, Index ldx, const T* w, Index ldw, const T* g,
                 Index g_row, Index g_term, Update update, T* dx, Index lddx, const Pull& pull) {
  for (Index r = 0; r < rows; ++r)
    for (Index t = 0; t < terms; ++t) {
      const T *const xr = x + r * ldx, *const wt = w + t * ldw;
      const T weight = g[r * g_row + t * g_term];
      const Update term_update = t == 0 ? update : Update::accumulate;
      for (Index i = 0; i < width; ++i) write(term_update, dx[r * lddx + i], pull(weight, wt[i] - xr[i]));
    }
}

}  // namespace detail

/// Gradient of s = negative_l1(x, w) with respect to x, given g = d(loss)/ds:
///
///   dx[r,i] (+)= sum_t g[r,t] f(w[t,i] - x[r,i]),   f as `gradient` says.
///
/// Since f is odd, the same with x and w exchanged and g transposed is the gradient with respect to w.
/// x, dx [rows, width], w [terms, width]; op(g) is rows x terms: g itself, rows `ldg` apart, or with Transpose::yes
/// the transpose of the terms x rows matrix g. dx overlaps nothing; terms >= 1.
///
/// `full` is linear in w - x and becomes a matrix product and a correction, sum_t g w - x sum_t g: its error is
/// relative to sum |g| (|w| + |x|), so an offset common to x and w costs the digits that it exceeds their difference
/// by. Counts per element of dx: sign 2 terms - 1 add and 2 terms cmp; hardtanh `terms` mul more; full terms + 1 mul
/// and `terms` add, and terms - 1 add per row. One add more per element to accumulate.
template <class T>
void negative_l1_gradient(DistanceGradient gradient, Transpose transpose_g, Index rows, Index terms, Index width,
                          const T* x, Index ldx, const T* w, Index ldw, const T* g, Index ldg, Update update, T* dx,
                          Index lddx) {
  const Index g_row = transpose_g == Transpose::no ? ldg : 1, g_term = transpose_g == Transpose::no ? 1 : ldg;
  if (gradient == DistanceGradient::sign)
    return detail::l1_gradient(rows, terms, width, x, ldx, w, ldw, g, g_row, g_term, update, dx, lddx, pull_sign<T>);
  if (gradient == DistanceGradient::hardtanh)
    return detail::l1_gradient(rows, terms, width, x, ldx, w, ldw, g, g_row, g_term, update, dx, lddx,
                               pull_hardtanh<T>);
  gemm(transpose_g, Transpose::no, rows, width, terms, g, ldg, w, ldw, update, dx, lddx);
  constexpr Index block = 64;  // rows whose sums are formed side by side: those of a transposed g are neighbours
  for (Index first = 0; first < rows; first += block) {
    const Index count = std::min(block, rows - first);
    T sums[block];
    for (Index t = 0; t < terms; ++t)
      for (Index r = 0; r < count; ++r)
        write(t == 0 ? Update::assign : Update::accumulate, sums[r], g[(first + r) * g_row + t * g_term]);
    for (Index r = 0; r < count; ++r)
      for (Index i = 0; i < width; ++i) dx[(first + r) * lddx + i] -= sums[r] * x[(first + r) * ldx + i];
  }
}

#ifndef HEED_REFERENCE
void negative_l1(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                 Update update, float* s, Index lds);
void negative_l1_by_maxima(Index rows, Index columns, Index width, const float* x, Index ldx, const float* w, Index ldw,
                           const float* bias, float* s, Index lds);
void negative_l1_gradient(DistanceGradient gradient, Transpose transpose_g, Index rows, Index terms, Index width,
                          const float* x, Index ldx, const float* w, Index ldw, const float* g, Index ldg,
                          Update update, float* dx, Index lddx);
#endif

}  // namespace kernels
}  // namespace heed
