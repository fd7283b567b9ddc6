// Small helpers on the rows of a matrix.
#pragma once

#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

namespace heed::kernels {

/// out[r] = sum_i a[r,i] b[r,i] for rows of n numbers, `a_stride` and `b_stride` apart.
/// Fast float: relative to sum |a||b| the error is at most n eps. Counts per row: n mul, n - 1 add.
template <class T>
void row_dots(Index rows, Index n, const T* a, Index a_stride, const T* b, Index b_stride, T* out) {
  for (Index r = 0; r < rows; ++r, a += a_stride, b += b_stride) {
    out[r] = a[0] * b[0];
    for (Index i = 1; i < n; ++i) out[r] += a[i] * b[i];
  }
}

/// out[r] = sum_i a[r,i] (b[r,i] - c[r,i]), likewise. Counts per row: n mul, 2n - 1 add.
template <class T>
void row_dots_of_differences(Index rows, Index n, const T* a, Index a_stride, const T* b, Index b_stride, const T* c,
                             Index c_stride, T* out) {
  for (Index r = 0; r < rows; ++r, a += a_stride, b += b_stride, c += c_stride) {
    out[r] = a[0] * (b[0] - c[0]);
    for (Index i = 1; i < n; ++i) out[r] += a[i] * (b[i] - c[i]);
  }
}

/// out[i] (+)= sum over r of weights[r] rows[r][i] for `count` >= 1 rows of n numbers, wherever they lie. Rows are
/// added in order, in fast float before what was in `out`. Relative to sum |weight||row| the error is at most `count`
/// eps. Counts: count n mul, (count - 1) n add, n more to accumulate.
template <class T>
void weighted_rows(Index count, Index n, const T* weights, const T* const* rows, Update update, T* out) {
  for (Index r = 0; r < count; ++r) {
    const Update row_update = r == 0 ? update : Update::accumulate;
    for (Index i = 0; i < n; ++i) write(row_update, out[i], weights[r] * rows[r][i]);
  }
}

/// out[i] (+)= sum over rows of a[r,i], a [rows, n]. Rows are added in order (in fast float before what was in
/// `out`, not after it), so results do not depend on how wide the machine's registers are. Counts: (rows - 1) n add, n
/// more to accumulate.
template <class T>
void column_sums(Index rows, Index n, const T* a, Update update, T* out) {
  for (Index r = 0; r < rows; ++r, a += n) {
    const Update row_update = r == 0 ? update : Update::accumulate;
    for (Index i = 0; i < n; ++i) write(row_update, out[i], a[i]);
  }
}

#ifndef HEED_REFERENCE
void row_dots(Index rows, Index n, const float* a, Index a_stride, const float* b, Index b_stride, float* out);
void row_dots_of_differences(Index rows, Index n, const float* a, Index a_stride, const float* b, Index b_stride,
                             const float* c, Index c_stride, float* out);
void weighted_rows(Index count, Index n, const float* weights, const float* const* rows, Update update, float* out);
void column_sums(Index rows, Index n, const float* a, Update update, float* out);
#endif

}  // namespace heed::kernels
