// The index of a value in a row.
#pragma once

#include "heed/kernels/shared/simd.h"

namespace heed::kernels::simd {

/// Returns the index of the first of n elements, 1 <= n <= 2^24, whose product with `factor` equals `value`, or n - 1
/// if there is none. Branch-free, since branches would be unpredictable.
inline Index first_equal(Index n, const float* row, Vector factor, float value) {
  const Vector wanted = set(value), last = set(static_cast<float>(n - 1));
  Vector first = last;
  for_each_vector(n, [&](Index j, auto use) {
    const Vector indices = hn::Iota(tag, static_cast<float>(j));
    const auto equal = hn::Eq(hn::Mul(factor, use.load(row + j)), wanted);
    first = hn::Min(first, hn::IfThenElse(equal, indices, last));  // indices beyond the row are larger than `last`
  });
  return static_cast<Index>(hn::GetLane(hn::MinOfLanes(tag, first)));
}

}  // namespace heed::kernels::simd
