// Loops that keep one part of the processor busy and nothing else.
#pragma once

#include "heed/base/tensor.h"

namespace heed::bench {

/// Runs `steps` steps of terms_per_step terms each, counted as elements.
using RegisterLoop = void (*)(Index steps);
extern const Index terms_per_step;

void multiply_add(Index steps);      ///< sum + x w
void l1_by_maxima(Index steps);      ///< sum - 2 max(x, w)
void clamp_difference(Index steps);  ///< sum + g clamp(w - x, -1, 1), the difference as a fused step
void clamp_by_turns(Index steps);    ///< the same, every other difference fused
void clamp_shifted(Index steps);     ///< the same as g (min(max(w, x - 1), x + 1) - x)

/// y = exp(x) for n numbers.
void exp_of(Index n, const float* x, float* y);

/// Arrays are streamed in whole blocks of so many numbers.
inline constexpr Index stream_block = 256;

/// A way to go through memory: `arrays` of n numbers, one after the other from `block` on; n is a multiple of
/// stream_block. Moves `moves` n numbers.
struct Stream {
  const char* name;
  Index arrays, moves;
  void (*run)(Index n, float* block);
};

void triad(Index n, float* block);  ///< x = y + 3 z
void scale(Index n, float* block);  ///< x = 3 x
void read(Index n, float* block);   ///< adds up x

inline constexpr Stream streams[] = {{"triad", 3, 3, triad}, {"scale", 1, 2, scale}, {"read", 1, 1, read}};

}  // namespace heed::bench
