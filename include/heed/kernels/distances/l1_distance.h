// l1 distances between the rows of two matrices, and the gradients that adder networks use for them.
#pragma once

#include "heed/kernels/products/gemm.h"

#include <algorithm>
#include <cmath>

namespace heed {

/// The function f used as the derivative of |u| in the backward pass: sign(u), with sign(0) = 0, the true derivative;
/// clamp(u, -1, 1), the derivative of the Huber function (u^2 / 2 for |u| <= 1, |u| - 1/2 beyond); u, the derivative of
/// u^2 / 2.
enum class DistanceGradient { sign, hardtanh, full };

namespace kernels {

namespace detail {

/// Returns g f(u) for f = sign, without a product. Counts: 2 cmp.
template <class T>
T pull_sign(T g, T u) {
  const bool above = u > T(0), below = u < T(0);
  return above ? g : below ? -g : T(0);
}

/// Returns g f(u) for f = clamp(u, -1, 1). Counts: 2 cmp and 1 mul.
template <class T>
T pull_hardtanh(T g, T u) {
  const T low = u < T(-1) ? T(-1) : u;
  return g * (low > T(1) ? T(1) : low);
}

/// Computes dx (+)= sum over t of pull(g[r,t], w[t,i] - x[r,i]).
template <class T, class Pull>
void l1_gradient(MatrixFor<T> x, MatrixFor<T> w, OperandFor<T> g, Update update, Matrix<T> dx, const Pull& pull) {
  for (Index r = 0; r < x.rows; ++r)
    for (Index t = 0; t < w.rows; ++t) {
      const T *const xr = x[r], *const wt = w[t], weight = g(r, t);
      for (Index i = 0; i < x.columns; ++i) write(term_update(t, update), dx(r, i), pull(weight, wt[i] - xr[i]));
    }
}

/// Computes dx (+)= g w - x sum_t g.
template <class T>
void full_l1_gradient(MatrixFor<T> x, MatrixFor<T> w, OperandFor<T> g, Update update, Matrix<T> dx) {
  gemm(g, w, update, dx);
  const T* const weights = g.data;
  const Index down = g.down(), across = g.across(), terms = w.rows, columns = x.columns;
  constexpr Index block = 64;  // rows of g whose sums are computed together: adjacent in memory if g is transposed
  for (Index first = 0; first < x.rows; first += block) {
    const Index count = std::min(block, x.rows - first);
    T sums[block];
    for (Index t = 0; t < terms; ++t) {
      const T* const column = weights + first * down + t * across;
      for (Index r = 0; r < count; ++r) write(term_update(t), sums[r], column[r * down]);
    }
    for (Index r = 0; r < count; ++r) {
      const T sum = sums[r], *const from = x[first + r];
      T* const to = dx[first + r];
      for (Index i = 0; i < columns; ++i) to[i] -= sum * from[i];
    }
  }
}

}  // namespace detail

/// The ratio of the distances of rows of w, from the origin and from the first row, above which negative_l1_by_maxima()
/// uses differences.
inline constexpr float far = 8;

inline namespace reference {

/// Computes s[r,c] = -sum_i |x[r,i] - w[c,i]| for x [rows, width], w [columns, width] and s [rows, columns], width >=
/// 1. s must not overlap x or w. The result is finite if the distance is. Relative error: at most width eps, as all
/// terms have the same sign.
template <class T>
void negative_l1(MatrixFor<T> x, MatrixFor<T> w, Matrix<T> s) {
  using std::abs;
  for (Index r = 0; r < s.rows; ++r)
    for (Index c = 0; c < s.columns; ++c) {
      const T *const xr = x[r], *const wc = w[c];
      T sum = abs(xr[0] - wc[0]);
      for (Index i = 1; i < x.columns; ++i) sum += abs(xr[i] - wc[i]);
      s(r, c) = -sum;
    }
}

/// Computes s[r,c] = bias[c] - sum_i |x[r,i] - w[c,i]|; bias [columns], or nullptr for zeros. Counts: those of
/// negative_l1(), and 1 add per element of s for the bias.
///
/// Fast float uses |x - w| = 2 max(x, w) - x - w, which is as fast as a matrix product; subtraction and absolute value
/// take almost twice as long. With eps = 2^-23 the error is at most
///   2 width eps (|x|_1 + |w|_1) + 3 eps |bias|,
/// and the result is finite if 2 (|x|_1 + |w|_1) is. This bound is weak for rows that are close to each other but far
/// from the origin. So if four sampled rows of w are on average more than `far` times as far from the origin as from
/// the first row of w, differences are used, with the error of negative_l1() and eps (|s| + |bias|) for the bias.
/// Checking w suffices: if x is far from the rows of w, the distances are as large as the rows and the bound is good.
template <class T>
void negative_l1_by_maxima(MatrixFor<T> x, MatrixFor<T> w, const std::type_identity_t<T>* bias, Matrix<T> s) {
  negative_l1(x, w, s);
  for (Index r = 0; r < s.rows && bias; ++r)
    for (Index c = 0; c < s.columns; ++c) s(r, c) += bias[c];
}

/// Returns the counts for `pairs` pairs of rows. An absolute value counts as a comparison.
inline Counts negative_l1_counts(Index pairs, Index width) {
  return {.add = pairs * (2 * width - 1), .cmp = pairs * width};
}

/// Returns the contractions, as counted in papers: a difference and a sum for each of `terms` = pairs * width terms.
inline Counts negative_l1_contractions(Index terms) { return {.add = 2 * terms}; }

/// Computes the gradient of s = negative_l1(x, w) with respect to x, given g = d(loss)/ds:
///
///   dx[r,i] (+)= sum_t g[r,t] f(w[t,i] - x[r,i]),   f selected by `gradient`.
///
/// f is odd, so exchanging x and w and transposing g gives the gradient with respect to w. x, dx [rows, width], w
/// [terms, width], g [rows, terms], terms >= 1; dx must not overlap anything. x and w must be finite: f can be finite
/// for infinite x or w, but their distance is not.
///
/// Fast float: error at most (terms + 3) eps relative to sum |g| and the previous value. `full` is linear in w - x and
/// is computed as a matrix product and a correction, sum_t g w - x sum_t g: its error is relative to sum
/// |g| (|w| + |x|), so precision is lost if x and w share an offset much larger than their difference.
template <class T>
void negative_l1_gradient(DistanceGradient gradient, MatrixFor<T> x, MatrixFor<T> w, OperandFor<T> g, Update update,
                          Matrix<T> dx) {
  switch (gradient) {
    case DistanceGradient::sign:
      return detail::l1_gradient(x, w, g, update, dx, detail::pull_sign<T>);
    case DistanceGradient::hardtanh:
      return detail::l1_gradient(x, w, g, update, dx, detail::pull_hardtanh<T>);
    case DistanceGradient::full:
      return detail::full_l1_gradient(x, w, g, update, dx);
  }
}

/// Returns the counts for Update::assign; accumulating takes one more addition per element of dx.
inline Counts negative_l1_gradient_counts(DistanceGradient gradient, Index rows, Index terms, Index width) {
  const Index elements = rows * width;
  switch (gradient) {
    case DistanceGradient::sign:
      return {.add = elements * (2 * terms - 1), .cmp = 2 * elements * terms};
    case DistanceGradient::hardtanh:
      return {.mul = elements * terms, .add = elements * (2 * terms - 1), .cmp = 2 * elements * terms};
    case DistanceGradient::full:
      return product_counts(rows, width, terms) + Counts{.mul = elements, .add = elements + rows * (terms - 1)};
  }
  HEED_ASSERT(false);
}

/// Returns the contractions, as counted in papers: a difference, a product (none for sign) and a sum for each of
/// `terms` terms, where `terms` is the product of rows, terms per row and width.
inline Counts negative_l1_gradient_contractions(DistanceGradient gradient, Index terms) {
  return {.mul = gradient == DistanceGradient::sign ? 0 : terms, .add = 2 * terms};
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void negative_l1(Matrix<const float> x, Matrix<const float> w, Matrix<float> s);
void negative_l1_by_maxima(Matrix<const float> x, Matrix<const float> w, const float* bias, Matrix<float> s);
void negative_l1_gradient(DistanceGradient gradient, Matrix<const float> x, Matrix<const float> w, Operand<float> g,
                          Update update, Matrix<float> dx);
#endif

}  // namespace kernels
}  // namespace heed
