// Where a number stands in a row.
#pragma once

#include "heed/kernels/shared/simd.h"

namespace heed::kernels::simd {

/// The first place of n >= 1 numbers, at most 2^24 of them, whose product with `factor` equals `value`; the last if
/// there is none. Without branches: nobody could foresee them.
inline Index first_equal(Index n, const float* row, Vector factor, float value) {
  const Vector wanted = set(value), last = set(static_cast<float>(n - 1));
  Vector first = last;
  for_each_vector(n, [&](Index j, auto use) {
    const Vector places = hn::Iota(tag, static_cast<float>(j));
    const auto equal = hn::Eq(hn::Mul(factor, use.load(row + j)), wanted);
    first = hn::Min(first, hn::IfThenElse(equal, places, last));  // beyond the row places are larger
  });
  return static_cast<Index>(hn::GetLane(hn::MinOfLanes(tag, first)));
}

}  // namespace heed::kernels::simd
