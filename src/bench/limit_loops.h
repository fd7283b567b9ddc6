// Loops that are each limited by a single resource: execution units or a memory.
#pragma once

#include "heed/base/tensor.h"

namespace heed::bench {

/// A loop of `steps` steps of terms_per_step terms (elements) each.
using RegisterLoop = void (*)(Index steps);
extern const Index terms_per_step;

void multiply_add(Index steps);      ///< sum + x w
void l1_by_maxima(Index steps);      ///< sum - 2 max(x, w)
void clamp_difference(Index steps);  ///< sum + g clamp(w - x, -1, 1), with w - x as a fused multiply-add
void clamp_by_turns(Index steps);    ///< sum + g clamp(w - x, -1, 1), with every second w - x as a fused multiply-add
void clamp_shifted(Index steps);     ///< sum + g clamp(x - w, -1, 1), as g (min(max(x, w - 1), w + 1) - w)

/// Computes y = exp(x) for n elements.
void exp_of(Index n, const float* x, float* y);

/// Elements per block; arrays are streamed in whole blocks.
inline constexpr Index stream_block = 256;

/// A memory access pattern: `arrays` arrays of n elements, stored consecutively from `block` on; n is a multiple of
/// stream_block. Each call of `run` moves `moves` * n elements.
struct Stream {
  const char* name;
  Index arrays, moves;
  void (*run)(Index n, float* block);
};

void triad(Index n, float* block);  ///< x = y + 3 z
void scale(Index n, float* block);  ///< x = 3 x
void read(Index n, float* block);   ///< sums x

inline constexpr Stream streams[] = {{"triad", 3, 3, triad}, {"scale", 1, 2, scale}, {"read", 1, 1, read}};

}  // namespace heed::bench
