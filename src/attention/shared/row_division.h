// out_i = y_i / D_i with weighted sums y_i of values and sums D_i of weights: the last step of normalised mechanisms.
#pragma once

#include "heed/kernels/rows/rows.h"

namespace heed {

/// Returns a matrix of `rows` copies of `row` (stride 0).
template <class T>
Matrix<const T> repeated(Matrix<T> row, Index rows) {
  return {row.data, rows, row.columns, 0};
}

/// Replaces y_i by out_i, and D_i by its reciprocal.
template <class T>
void divide_rows(Matrix<T> y, T* D) {
  for (Index i = 0; i < y.rows; ++i) {
    D[i] = T(1) / D[i];
    T* const row = y[i];
#pragma GCC ivdep
    for (Index c = 0; c < y.columns; ++c) row[c] *= D[i];
  }
}

/// Computes dy_i = dout_i / D_i, dD_i = -<dout_i, out_i> / D_i. `reciprocals` holds 1 / D.
template <class T>
void divide_rows_backward(Matrix<const T> out, const T* reciprocals, Matrix<const T> dout, Matrix<T> dy, T* dD) {
  kernels::row_dots(dout, out, dD);
  for (Index i = 0; i < out.rows; ++i) {
    const T reciprocal = reciprocals[i], *const from = dout[i];
    dD[i] = -(reciprocal * dD[i]);
    T* const to = dy[i];
#pragma GCC ivdep
    for (Index c = 0; c < out.columns; ++c) to[c] = reciprocal * from[c];
  }
}

}  // namespace heed
