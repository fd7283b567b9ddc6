// The hash of Reformer (Kitaev, Kaiser, Levskaya, "Reformer: The Efficient Transformer", 2020, arXiv:2001.04451v2,
// Section 2): rows that point the same way are likely to get the same bucket.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

namespace heed::kernels {

namespace reference {

/// buckets[r] = the place of the first largest number of [U_r, -U_r], 2 n of them for U [rows, n], which holds no
/// NaN. Exact.
template <class T>
void hash_rows(MatrixFor<T> U, T* buckets) {
  const Index n = U.columns;
  for (Index r = 0; r < U.rows; ++r) {
    T largest = U(r, 0);
    Index place = 0;
    for (Index j = 1; j < n; ++j)
      if (U(r, j) > largest) largest = U(r, j), place = j;
    for (Index j = 0; j < n; ++j)
      if (-U(r, j) > largest) largest = -U(r, j), place = n + j;
    buckets[r] = T(static_cast<double>(place));
  }
}

}  // namespace reference

using reference::hash_rows;
#ifndef HEED_NO_SIMD
void hash_rows(Matrix<const float> U, float* buckets);
#endif

inline Counts hash_rows_counts(Index rows, Index n) { return {.cmp = rows * (2 * n - 1)}; }

}  // namespace heed::kernels
