// Linear systems with a symmetric positive definite matrix, for ridge regression. No model solves them, so there are no
// counts.
#pragma once

#include "heed/base/matrix.h"

#include <cmath>

namespace heed::kernels {

inline namespace reference {

/// Replaces B [n, c] by A^-1 B for a symmetric A [n, n]. Reads and overwrites the lower triangle and the diagonal of A.
/// Returns false, with B unspecified, if A is not positive definite in this number type.
///
/// Cholesky decomposition: A = L L^T with L lower triangular, row by row
///   L[i, j] = (A[i, j] - sum over l < j of L[i, l] L[j, l]) / L[j, j],   L[i, i] = sqrt(A[i, i] - sum of L[i, l]^2),
/// then L Y = B by forward and L^T X = Y by backward substitution.
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

#ifndef HEED_NO_BLAS
/// Solves the same system with LAPACK's dposv.
bool solve_positive(Matrix<double> A, Matrix<double> B);
#endif

}  // namespace heed::kernels
