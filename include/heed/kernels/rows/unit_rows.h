// Division of rows by their Euclidean lengths.
#pragma once

#include "heed/kernels/rows/rows.h"

#include <cmath>

namespace heed::kernels {

/// Lower bound on the divisor.
inline constexpr double least_length = 1e-12;

/// Computes y[r] = x[r] / divisors[r] with divisors[r] = max(|x[r]|, least_length). y may be x. If |x[r]|^2 overflows,
/// y[r] is 0.
template <class T>
void unit_rows(MatrixFor<T> x, T* divisors, Matrix<T> y) {
  using std::sqrt;
  row_dots(x, x, divisors);
  for (Index r = 0; r < x.rows; ++r) {
    const T length = sqrt(divisors[r]);
    const T divisor = divisors[r] = length > T(least_length) ? length : T(least_length);
    for (Index c = 0; c < x.columns; ++c) y(r, c) = x(r, c) / divisor;
  }
}

/// Returns the counts for `rows` rows of n values.
inline Counts unit_rows_counts(Index rows, Index n) {
  return row_dots_counts(rows, n) + rows * Counts{.div = n, .sqrt = 1, .cmp = 1};
}

/// Computes dx (+)= (dy - y (y . dy)) / divisor for rows divided by their length, and dy / divisor for rows whose
/// divisor is least_length. dots [rows] is scratch memory.
template <class T>
void unit_rows_backward(MatrixFor<T> y, const T* divisors, MatrixFor<T> dy, Update update, T* dots, Matrix<T> dx) {
  row_dots(y, dy, dots);
  for (Index r = 0; r < y.rows; ++r) {
    const T dot = divisors[r] > T(least_length) ? dots[r] : T(0);
    for (Index c = 0; c < y.columns; ++c) write(update, dx(r, c), (dy(r, c) - y(r, c) * dot) / divisors[r]);
  }
}

/// Returns the counts for `rows` rows of n values.
inline Counts unit_rows_backward_counts(Index rows, Index n) {
  return row_dots_counts(rows, n) + rows * Counts{.mul = n, .add = n, .div = n, .cmp = 1};
}

}  // namespace heed::kernels
