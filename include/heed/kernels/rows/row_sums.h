// Division of a matrix by the square roots of its row sums: D^-1/2 S D^-1/2.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

#include <cmath>

namespace heed::kernels {

/// Lower bound on a row sum.
inline constexpr double least_row_sum = 1e-6;

/// Returns 1 / sqrt(max(sum, least_row_sum)).
template <class T>
T inverse_root(T sum) {
  using std::sqrt;
  return T(1) / sqrt(sum < T(least_row_sum) ? T(least_row_sum) : sum);
}

/// Computes y (+)= D^-1/2 x for D [n, 1] and x, y [n, e]. y may be x.
template <class T>
void scale_rows(MatrixFor<T> D, MatrixFor<T> x, Update update, Matrix<T> y) {
  for (Index i = 0; i < y.rows; ++i) {
    const T root = inverse_root(D(i, 0));
    for (Index c = 0; c < y.columns; ++c) write(update, y(i, c), root * x(i, c));
  }
}

/// Returns the counts for Update::assign; accumulating takes one more addition per element.
inline Counts scale_rows_counts(Index n, Index e) { return {.mul = n * e, .div = n, .sqrt = n, .cmp = n}; }

/// Computes the gradient dD of the row sums D [n, 1] in out = r (S (r v)), r = D^-1/2. With w = r v and dw = S^T (r
/// dout), for each row,
///   r dr = dout.out + dw.w,   dD = -r^3 dr / 2 = -(dout.out + dw.w) / (2 D),   or 0 if D was clamped.
template <class T>
void row_sums_backward(MatrixFor<T> D, MatrixFor<T> out, MatrixFor<T> dout, MatrixFor<T> w, MatrixFor<T> dw,
                       Matrix<T> dD) {
  for (Index i = 0; i < dD.rows; ++i) {
    T sum(0);
    for (Index c = 0; c < out.columns; ++c) {
      write(term_update(c), sum, dout(i, c) * out(i, c) + dw(i, c) * w(i, c));
    }
    const T slope = T(-0.5) * sum / D(i, 0);
    dD(i, 0) = D(i, 0) < T(least_row_sum) ? T(0) : slope;
  }
}

/// Returns the counts for n rows with e channels.
inline Counts row_sums_backward_counts(Index n, Index e) {
  return n * Counts{.mul = 2 * e + 1, .add = 2 * e - 1, .div = 1, .cmp = 1};
}

/// Returns the cost of D^-1/2 (S (D^-1/2 v)) without its two products with S: two scalings in the forward pass; three
/// scalings and the gradient of D in the backward pass.
inline Cost row_sums_cost(Index n, Index e) {
  Cost cost;
  cost.forward = 2 * scale_rows_counts(n, e);
  cost.backward = 3 * scale_rows_counts(n, e) + row_sums_backward_counts(n, e);
  return cost;
}

/// Computes scaled = E^-1/2 X E^-1/2 for X [m, m] and the row sums E of A [m, m], which must be positive. Writes E^-1/2
/// to root [m, 1].
template <class T>
void scale_inverse(MatrixFor<T> A, MatrixFor<T> X, Matrix<T> root, Matrix<T> scaled) {
  using std::sqrt;
  const Index m = A.rows;
  for (Index i = 0; i < m; ++i) {
    T sum = A(i, 0);
    for (Index j = 1; j < m; ++j) sum += A(i, j);
    root(i, 0) = T(1) / sqrt(sum);
  }
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) scaled(i, j) = root(i, 0) * X(i, j) * root(j, 0);
}

/// Replaces dX, the gradient of `scaled`, by the gradient of X: dX_ij *= E_i^-1/2 E_j^-1/2. Computes dE [m, 1]: dE_i is
/// to be added to the gradient of each element of row i of A. As E_i scales a row and a column,
///   dE_i = -sum_j (dscaled_ij scaled_ij + dscaled_ji scaled_ji) / (2 E_i).
/// `root` is the result of scale_inverse().
template <class T>
void scale_inverse_backward(MatrixFor<T> root, MatrixFor<T> scaled, Matrix<T> dX, Matrix<T> dE) {
  const Index m = dX.rows;
  for (Index i = 0; i < m; ++i) {
    T sum(0);
    for (Index j = 0; j < m; ++j) {
      write(term_update(j), sum, dX(i, j) * scaled(i, j) + dX(j, i) * scaled(j, i));
    }
    dE(i, 0) = T(-0.5) * sum * (root(i, 0) * root(i, 0));
  }
  for (Index i = 0; i < m; ++i)
    for (Index j = 0; j < m; ++j) dX(i, j) = root(i, 0) * dX(i, j) * root(j, 0);
}

/// Returns the cost of scale_inverse(), of its gradient, and of adding dE to dA.
inline Cost scale_inverse_cost(Index m) {
  Cost cost;
  cost.forward = {.mul = 2 * m * m, .add = m * (m - 1), .div = m, .sqrt = m};
  cost.backward = {.mul = 4 * m * m + 3 * m, .add = 3 * m * m - m};
  return cost;
}

}  // namespace heed::kernels
