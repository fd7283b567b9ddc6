// Singular values of a matrix, for analyses. No model uses them; there are no counts, since the number of rotations
// depends on the values.
#pragma once

#include "heed/base/matrix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace heed::kernels {

inline namespace reference {

/// Writes the singular values of A [m, n], in descending order, to values [min(m, n)]. A must be finite and is
/// overwritten. Absolute error: at most about max(m, n) eps values[0].
///
/// One-sided Jacobi (Hestenes 1958): pairs of rows are rotated, which preserves the singular values, until all rows are
/// orthogonal. The values are then the lengths of the rows; at most n of the lengths are larger than rounding errors.
/// For rows x and y, tan(2 angle) = 2 x.y / (y.y - x.x).
template <class T>
void singular_values(Matrix<T> A, std::type_identity_t<T>* values) {
  using std::abs, std::sqrt;
  const Index m = A.rows, n = A.columns;
  constexpr T eps = std::numeric_limits<T>::epsilon();
  constexpr int most_sweeps = 40;  // convergence is quadratic; six to ten sweeps are usual
  const auto dot = [n](const T* x, const T* y) {
    T sum(0);
    for (Index c = 0; c < n; ++c) sum += x[c] * y[c];
    return sum;
  };
  T squares(0);
  for (Index i = 0; i < m; ++i) squares += dot(A[i], A[i]);
  bool turned = true;
  for (int sweep = 0; turned && sweep < most_sweeps; ++sweep) {
    turned = false;
    for (Index i = 0; i < m; ++i)
      for (Index j = i + 1; j < m; ++j) {
        T *const x = A[i], *const y = A[j];
        const T xx = dot(x, x), yy = dot(y, y), xy = dot(x, y);
        // Rows that are orthogonal up to rounding or consist of rounding errors are not rotated.
        if (abs(xy) <= eps * sqrt(xx) * sqrt(yy) || abs(xy) <= eps * eps * squares) continue;
        turned = true;
        const T cotangent = (yy - xx) / (2 * xy);
        const T tangent = (cotangent < 0 ? T(-1) : T(1)) / (abs(cotangent) + sqrt(1 + cotangent * cotangent));
        const T cosine = 1 / sqrt(1 + tangent * tangent), sine = cosine * tangent;
        for (Index c = 0; c < n; ++c) {
          const T old = x[c];
          x[c] = cosine * old - sine * y[c];
          y[c] = sine * old + cosine * y[c];
        }
      }
  }
  std::vector<T> lengths;
  for (Index i = 0; i < m; ++i) lengths.push_back(sqrt(dot(A[i], A[i])));
  std::sort(lengths.begin(), lengths.end(), std::greater<T>());
  std::copy_n(lengths.begin(), std::min(m, n), values);
}

}  // namespace reference

#ifndef HEED_NO_BLAS
/// Computes the same values with LAPACK's dgesvd.
void singular_values(Matrix<double> A, double* values);
#endif

}  // namespace heed::kernels
