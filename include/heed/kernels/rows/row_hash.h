// The locality-sensitive hash of Reformer (Kitaev, Kaiser, Levskaya, "Reformer: The Efficient Transformer", 2020,
// arXiv:2001.04451v2, Section 2): rows of similar direction are likely to be in the same bucket.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

namespace heed::kernels {

inline namespace reference {

/// Computes buckets[r] = the index of the first maximum of [U_r, -U_r], 2 n elements, for U [rows, n] without NaN.
/// Exact.
template <class T>
void hash_rows(MatrixFor<T> U, T* buckets) {
  const Index n = U.columns;
  for (Index r = 0; r < U.rows; ++r) {
    T largest = U(r, 0);
    Index index = 0;
    for (Index j = 1; j < n; ++j)
      if (U(r, j) > largest) largest = U(r, j), index = j;
    for (Index j = 0; j < n; ++j)
      if (-U(r, j) > largest) largest = -U(r, j), index = n + j;
    buckets[r] = T(static_cast<double>(index));
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast version for float.
void hash_rows(Matrix<const float> U, float* buckets);
#endif

/// Returns the counts for `rows` rows of n values.
inline Counts hash_rows_counts(Index rows, Index n) { return {.cmp = rows * (2 * n - 1)}; }

}  // namespace heed::kernels
