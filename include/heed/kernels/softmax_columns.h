// Softmax over the rows of a matrix, column by column: each channel over its tokens.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/exp.h"
#include "heed/kernels/normalize.h"
#include "heed/kernels/update.h"

namespace heed::kernels {

/// y[r,c] = exp(x[r,c] - max_c) / sum_c, with maximum and sum of column c. x and y [rows, columns], rows >= 1; y may be
/// x. Finite for finite x. Relative error in float at most 4e-7 + 7e-8 |x - max|, for sums run in double.
template <class T>
void softmax_columns(MatrixFor<T> x, Matrix<T> y) {
  using Sum = detail::Sum<T>;
  for (Index first = 0; first < x.columns; first += detail::channels_at_once) {
    const Index width = std::min(detail::channels_at_once, x.columns - first);
    T maxima[detail::channels_at_once], divisors[detail::channels_at_once];
    Sum sums[detail::channels_at_once];
    std::copy_n(x[0] + first, width, maxima);
    for (Index r = 1; r < x.rows; ++r) {
      const T* const row = x[r] + first;
      for (Index c = 0; c < width; ++c) maxima[c] = row[c] > maxima[c] ? row[c] : maxima[c];
    }
    for (Index r = 0; r < x.rows; ++r) {
      const Update update = r == 0 ? Update::assign : Update::accumulate;
      const T* const from = x[r] + first;
      T* const to = y[r] + first;
      for (Index c = 0; c < width; ++c) {
        to[c] = exp(from[c] - maxima[c]);
        write(update, sums[c], Sum(to[c]));
      }
    }
    for (Index c = 0; c < width; ++c) divisors[c] = T(sums[c]);
    for (Index r = 0; r < x.rows; ++r) {
      T* const row = y[r] + first;
      for (Index c = 0; c < width; ++c) row[c] = row[c] / divisors[c];
    }
  }
}

inline Counts softmax_columns_counts(Index rows, Index columns) {
  return columns * Counts{.add = 2 * rows - 1, .div = rows, .exp = rows, .cmp = rows - 1};
}

/// dx (+)= y (dy - sum over rows of y dy), column by column: the derivative of a column divided by its own sum. dx may
/// be dy. Sums run in double where numbers are float.
template <class T>
void softmax_columns_backward(MatrixFor<T> y, MatrixFor<T> dy, Update update, Matrix<T> dx) {
  using Sum = detail::Sum<T>;
  for (Index first = 0; first < y.columns; first += detail::channels_at_once) {
    const Index width = std::min(detail::channels_at_once, y.columns - first);
    Sum sums[detail::channels_at_once];
    T dots[detail::channels_at_once];
    for (Index r = 0; r < y.rows; ++r) {
      const Update row_update = r == 0 ? Update::assign : Update::accumulate;
      const T *const yr = y[r] + first, *const dyr = dy[r] + first;
      for (Index c = 0; c < width; ++c) write(row_update, sums[c], Sum(yr[c]) * Sum(dyr[c]));
    }
    for (Index c = 0; c < width; ++c) dots[c] = T(sums[c]);
    for (Index r = 0; r < y.rows; ++r) {
      const T *const yr = y[r] + first, *const dyr = dy[r] + first;
      T* const to = dx[r] + first;
      for (Index c = 0; c < width; ++c) write(update, to[c], yr[c] * (dyr[c] - dots[c]));
    }
  }
}

/// When it assigns.
inline Counts softmax_columns_backward_counts(Index rows, Index columns) {
  return columns * Counts{.mul = 2 * rows, .add = 2 * rows - 1};
}

}  // namespace heed::kernels
