// Channels that do not depend on each other: a few vectors of them go through all rows of a matrix, with their maxima
// and sums in registers, before the next few.
#pragma once

#include "heed/kernels/shared/simd.h"

#include <type_traits>

namespace heed::kernels::simd {

/// Vectors of channels at a time: with three registers each, beside those of exp, and a cache line of each row at
/// least.
inline constexpr int channel_vectors = HWY_TARGET <= HWY_AVX3 ? 4 : 2;

/// Calls f(first channel, number of vectors as a constant, lanes to use) over n channels.
template <class F>
void for_each_block(Index n, const F& f) {
  Index c = 0;
  for (; c + channel_vectors * lanes <= n; c += channel_vectors * lanes)
    f(c, std::integral_constant<int, channel_vectors>{}, AllLanes{});
  for_each_vector(n - c, [&](Index i, auto use) { f(c + i, std::integral_constant<int, 1>{}, use); });
}

}  // namespace heed::kernels::simd
