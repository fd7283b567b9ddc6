// Dot products and sums of rows.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

/// Three rows at any addresses.
template <class T>
struct RowTriple {
  const T *a, *b, *c;
};

inline namespace reference {

/// Computes out[r] = sum_i a[r,i] b[r,i]. Fast float: error at most n eps relative to sum |a||b| for rows of n
/// elements.
template <class T>
void row_dots(MatrixFor<T> a, MatrixFor<T> b, T* out) {
  for (Index r = 0; r < a.rows; ++r) {
    out[r] = a(r, 0) * b(r, 0);
    for (Index i = 1; i < a.columns; ++i) out[r] += a(r, i) * b(r, i);
  }
}

/// Computes out[r] = sum_i a[i] (b[i] - c[i]) for each of `count` triples of rows of n elements. Error as in
/// row_dots(). Counts: those of row_dots(), plus `count` n additions.
template <class T>
void row_dots_of_differences(Index count, Index n, const RowTriple<T>* rows, T* out) {
  for (Index r = 0; r < count; ++r) {
    const auto [a, b, c] = rows[r];
    out[r] = a[0] * (b[0] - c[0]);
    for (Index i = 1; i < n; ++i) out[r] += a[i] * (b[i] - c[i]);
  }
}

/// Computes out[i] (+)= sum over r of weights[r] rows[r][i] for `count` >= 1 rows of n elements at any addresses. Rows
/// are added in order; fast float adds the previous value of out last. Error: at most `count` eps relative to sum
/// |weight||row| and the previous value. Counts: product_counts(1, n, count), and n more additions to accumulate.
template <class T>
void weighted_rows(Index count, Index n, const T* weights, const T* const* rows, Update update, T* out) {
  for (Index r = 0; r < count; ++r) {
    const Update row_update = term_update(r, update);
    for (Index i = 0; i < n; ++i) write(row_update, out[i], weights[r] * rows[r][i]);
  }
}

/// Computes out[i] (+)= sum over rows of a[r,i]. Rows are added in order, and their sum is added to the previous value
/// of out: the result does not depend on the CPU's register width, and accumulating many sums loses little.
template <class T>
void column_sums(MatrixFor<T> a, Update update, T* out) {
  for (Index i = 0; i < a.columns; ++i) {
    T sum(0);
    for (Index r = 0; r < a.rows; ++r) write(term_update(r), sum, a(r, i));
    write(update, out[i], sum);
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void row_dots(Matrix<const float> a, Matrix<const float> b, float* out);
void row_dots_of_differences(Index count, Index n, const RowTriple<float>* rows, float* out);
void weighted_rows(Index count, Index n, const float* weights, const float* const* rows, Update update, float* out);
void column_sums(Matrix<const float> a, Update update, float* out);
#endif

/// Returns the counts for `rows` pairs of rows of n values.
inline Counts row_dots_counts(Index rows, Index n) { return product_counts(rows, 1, n); }

/// Returns the counts for Update::assign; accumulating takes n more additions.
inline Counts column_sums_counts(Index rows, Index n) { return n * sum_counts(rows); }

}  // namespace heed::kernels
