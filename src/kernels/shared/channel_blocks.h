// Loops over blocks of independent channels: a few vectors at a time pass through all rows of a matrix, with their
// maxima and sums in registers.
#pragma once

#include "heed/kernels/shared/simd.h"

#include <type_traits>

namespace heed::kernels::simd {

/// Vectors per block. Each takes three registers, in addition to those of exp. With AVX2 and AVX-512, a block covers at
/// least a cache line of each row.
inline constexpr int channel_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

/// Calls f(first channel, number of vectors as a constant, AllLanes or FirstLanes) for whole blocks of the n channels,
/// then for single vectors.
template <int block = channel_vectors, class F>
void for_each_block(Index n, const F& f) {
  Index c = 0;
  for (; c + block * lanes <= n; c += block * lanes) f(c, std::integral_constant<int, block>{}, AllLanes{});
  for_each_vector(n - c, [&](Index i, auto use) { f(c + i, std::integral_constant<int, 1>{}, use); });
}

}  // namespace heed::kernels::simd
