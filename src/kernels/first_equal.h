// Where a number stands in a row.
#pragma once

#include "heed/kernels/simd.h"

namespace heed::kernels::simd {

/// The first place of n >= 1 numbers whose product with `factor` equals `value`; the last if there is none.
inline Index first_equal(Index n, const float* row, Vector factor, float value) {
  const Vector wanted = set(value);
  for (Index j = 0; j < n; j += lanes) {
    const bool whole = j + lanes <= n;
    const Vector x = whole ? AllLanes{}.load(row + j) : FirstLanes(n - j).load(row + j);
    const std::intptr_t found = hn::FindFirstTrue(tag, hn::Eq(hn::Mul(factor, x), wanted));
    if (found >= 0 && j + found < n) return j + found;
  }
  return n - 1;
}

}  // namespace heed::kernels::simd
