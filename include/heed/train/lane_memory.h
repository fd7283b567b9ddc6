// Which lanes threads take side by side, and which one after the other.
#pragma once

#include "heed/train/lanes.h"

namespace heed {

/// Are the lanes of a model with so many weights computed one after the other, each by all threads? The bits are the
/// same either way. Where there are enough lanes for all threads, and their gradients together are not too large,
/// threads that take a lane each need not wait for each other at every operation.
inline bool lanes_take_turns(Index weights, Index lanes, int threads) {
  constexpr Index most_numbers = Index{1} << 26;
  return lanes_are_streamed(weights) && (lanes < threads || lanes * weights > most_numbers);
}

}  // namespace heed
