// Softmax of the columns of a matrix: over the tokens, for each channel.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"

#include <algorithm>

namespace heed::kernels {

inline namespace reference {

/// Computes y[r,c] = exp(x[r,c] - max_c) / sum over rows of exp(x[r,c] - max_c), with the maximum max_c of column c. x
/// and y [rows, columns], rows >= 1. y may be x. Fast float: relative error at most 3e-7 + 6e-8 (rows / 4 + |x - max|).
template <class T>
void softmax_columns(MatrixFor<T> x, Matrix<T> y) {
  constexpr Index at_once = 64;  // columns whose maxima and sums are on the stack
  for (Index first = 0; first < x.columns; first += at_once) {
    const Index width = std::min(at_once, x.columns - first);
    T maxima[at_once], sums[at_once];
    for (Index c = 0; c < width; ++c) maxima[c] = x(0, first + c);
    for (Index r = 1; r < x.rows; ++r)
      for (Index c = 0; c < width; ++c) maxima[c] = x(r, first + c) > maxima[c] ? x(r, first + c) : maxima[c];
    for (Index r = 0; r < x.rows; ++r)
      for (Index c = 0; c < width; ++c) {
        const T e = exp(x(r, first + c) - maxima[c]);
        write(term_update(r), sums[c], e);
        y(r, first + c) = e;
      }
    for (Index r = 0; r < x.rows; ++r)
      for (Index c = 0; c < width; ++c) y(r, first + c) = y(r, first + c) / sums[c];
  }
}

/// Computes dx (+)= y (dy - sum over rows of y dy) for each column. dx must not overlap y; it may be dy. Fast float:
/// error at most (rows + 3) eps relative to |y| (|dy| + sum |y dy|).
template <class T>
void softmax_columns_backward(MatrixFor<T> y, MatrixFor<T> dy, Update update, Matrix<T> dx) {
  constexpr Index at_once = 64;
  for (Index first = 0; first < y.columns; first += at_once) {
    const Index width = std::min(at_once, y.columns - first);
    T sums[at_once];
    for (Index r = 0; r < y.rows; ++r)
      for (Index c = 0; c < width; ++c) write(term_update(r), sums[c], y(r, first + c) * dy(r, first + c));
    for (Index r = 0; r < y.rows; ++r)
      for (Index c = 0; c < width; ++c) write(update, dx(r, first + c), y(r, first + c) * (dy(r, first + c) - sums[c]));
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void softmax_columns(Matrix<const float> x, Matrix<float> y);
void softmax_columns_backward(Matrix<const float> y, Matrix<const float> dy, Update update, Matrix<float> dx);
#endif

/// Returns the counts for a matrix [rows, columns].
inline Counts softmax_columns_counts(Index rows, Index columns) {
  return columns * Counts{.add = 2 * rows - 1, .div = rows, .exp = rows, .cmp = rows - 1};
}

/// Returns the counts for Update::assign; accumulating takes one more addition per element.
inline Counts softmax_columns_backward_counts(Index rows, Index columns) {
  return columns * Counts{.mul = 2 * rows, .add = 2 * rows - 1};
}

}  // namespace heed::kernels
