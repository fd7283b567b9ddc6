// Small helpers on the rows of a matrix.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

/// Three rows, wherever they lie.
template <class T>
struct RowTriple {
  const T *a, *b, *c;
};

namespace reference {

/// out[r] = sum_i a[r,i] b[r,i]. Fast float: relative to sum |a||b| the error is at most n eps in a row of n.
template <class T>
void row_dots(MatrixFor<T> a, MatrixFor<T> b, T* out) {
  for (Index r = 0; r < a.rows; ++r) {
    out[r] = a(r, 0) * b(r, 0);
    for (Index i = 1; i < a.columns; ++i) out[r] += a(r, i) * b(r, i);
  }
}

/// out[r] = sum_i a[i] (b[i] - c[i]) for each of `count` triples r of rows a, b and c, which have n numbers. Error as
/// above.
template <class T>
void row_dots_of_differences(Index count, Index n, const RowTriple<T>* rows, T* out) {
  for (Index r = 0; r < count; ++r) {
    const auto [a, b, c] = rows[r];
    out[r] = a[0] * (b[0] - c[0]);
    for (Index i = 1; i < n; ++i) out[r] += a[i] * (b[i] - c[i]);
  }
}

/// out[i] (+)= sum over r of weights[r] rows[r][i] for `count` >= 1 rows of n numbers, wherever they lie. Rows are
/// added in order, in fast float before what was in `out`. Relative to sum |weight||row| the error is at most `count`
/// eps.
template <class T>
void weighted_rows(Index count, Index n, const T* weights, const T* const* rows, Update update, T* out) {
  for (Index r = 0; r < count; ++r) {
    const Update row_update = r == 0 ? update : Update::accumulate;
    for (Index i = 0; i < n; ++i) write(row_update, out[i], weights[r] * rows[r][i]);
  }
}

/// out[i] (+)= sum over rows of a[r,i]. Rows are added in order, and their sum to what was in `out`, so results do not
/// depend on how wide the machine's registers are, and little is lost where many such sums are added up.
template <class T>
void column_sums(MatrixFor<T> a, Update update, T* out) {
  for (Index i = 0; i < a.columns; ++i) {
    T sum(0);
    for (Index r = 0; r < a.rows; ++r) write(r == 0 ? Update::assign : Update::accumulate, sum, a(r, i));
    write(update, out[i], sum);
  }
}

}  // namespace reference

using reference::column_sums, reference::row_dots, reference::row_dots_of_differences, reference::weighted_rows;
#ifndef HEED_NO_SIMD
void row_dots(Matrix<const float> a, Matrix<const float> b, float* out);
void row_dots_of_differences(Index count, Index n, const RowTriple<float>* rows, float* out);
void weighted_rows(Index count, Index n, const float* weights, const float* const* rows, Update update, float* out);
void column_sums(Matrix<const float> a, Update update, float* out);
#endif

inline Counts row_dots_counts(Index rows, Index n) { return product_counts(rows, 1, n); }

inline Counts row_dots_of_differences_counts(Index rows, Index n) {
  return row_dots_counts(rows, n) + Counts{.add = rows * n};
}

/// When it assigns; n add more to accumulate.
inline Counts weighted_rows_counts(Index count, Index n) { return product_counts(1, n, count); }

/// When it assigns; n add more to accumulate.
inline Counts column_sums_counts(Index rows, Index n) { return n * sum_counts(rows); }

}  // namespace heed::kernels
