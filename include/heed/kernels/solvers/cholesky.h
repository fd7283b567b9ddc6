// Linear systems whose matrix is symmetric and positive definite: for ridge regression, no model solves them. There are
// no counts for the same reason.
#pragma once

#include "heed/base/matrix.h"

#include <cmath>

namespace heed::kernels {

namespace reference {

/// Replaces B [n, c] by A^-1 B, where A [n, n] is symmetric; of A the part below and on the diagonal is read, and
/// overwritten. False, with nothing of use in B, if A is not positive definite, or not in this number type.
///
/// Cholesky's way: A = L L^T with L lower triangular, row by row
///   L[i, j] = (A[i, j] - sum over l < j of L[i, l] L[j, l]) / L[j, j],   L[i, i] = sqrt(A[i, i] - sum of L[i, l]^2),
/// then L Y = B from the first row on and L^T X = Y from the last row back.
template <class T>
bool solve_positive(Matrix<T> A, Matrix<T> B) {
  using std::sqrt;
  const Index n = A.rows;
  const auto dot = [](const T* x, const T* y, Index count) {
    T sum(0);
    for (Index l = 0; l < count; ++l) sum += x[l] * y[l];
    return sum;
  };
  for (Index i = 0; i < n; ++i) {
    for (Index j = 0; j < i; ++j) A(i, j) = (A(i, j) - dot(A[i], A[j], j)) / A(j, j);
    const T square = A(i, i) - dot(A[i], A[i], i);
    if (!(square > 0)) return false;
    A(i, i) = sqrt(square);
  }
  const auto subtract = [&](Index from, T factor, Index to) {
    for (Index c = 0; c < B.columns; ++c) B(to, c) -= factor * B(from, c);
  };
  const auto divide = [&](Index i) {
    for (Index c = 0; c < B.columns; ++c) B(i, c) /= A(i, i);
  };
  for (Index i = 0; i < n; ++i) {
    for (Index l = 0; l < i; ++l) subtract(l, A(i, l), i);
    divide(i);
  }
  for (Index i = n - 1; i >= 0; --i) {
    for (Index l = i + 1; l < n; ++l) subtract(l, A(l, i), i);
    divide(i);
  }
  return true;
}

}  // namespace reference

using reference::solve_positive;
#ifndef HEED_NO_BLAS
/// The same by LAPACK's dposv.
bool solve_positive(Matrix<double> A, Matrix<double> B);
#endif

}  // namespace heed::kernels
