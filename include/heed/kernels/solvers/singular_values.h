// Singular values of a matrix: for analyses, no model takes them. There are no counts, since how many rotations
// it takes depends on the numbers.
#pragma once

#include "heed/base/matrix.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace heed::kernels {

namespace reference {

/// values [min(m, n)]: the singular values of A [m, n], largest first. Overwrites A, whose elements must be finite.
/// Absolute error at most about max(m, n) eps values[0].
///
/// One-sided Jacobi (Hestenes 1958): rows are rotated in pairs, which leaves the singular values what they are, until
/// all are orthogonal; then the values are their lengths, no more than n of which are not rounding. For rows x and y,
/// tan(2 angle) = 2 x.y / (y.y - x.x).
template <class T>
void singular_values(Matrix<T> A, std::type_identity_t<T>* values) {
  using std::abs, std::sqrt;
  const Index m = A.rows, n = A.columns;
  constexpr T eps = std::numeric_limits<T>::epsilon();
  constexpr int most_sweeps = 40;  // convergence is quadratic in the end; six to ten are usual
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
        // Two rows that are mere rounding are left as they are.
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

using reference::singular_values;
#ifndef HEED_NO_BLAS
/// The same by LAPACK's dgesvd.
void singular_values(Matrix<double> A, double* values);
#endif

}  // namespace heed::kernels
