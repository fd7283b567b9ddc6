// Flushing of subnormal numbers to zero: magnitudes below 1.2e-38 in float, 2.2e-308 in double.
#pragma once

#include <limits>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace heed {

/// Makes the calling thread, and threads that it starts, treat subnormal operands and results as zero; with `flush`
/// false, as the numbers they are. Intel's processors take more than a hundred cycles for an instruction with a
/// subnormal, and training produces many: vanishing gradients, for example in SOFT's Newton-Raphson steps, and exps of
/// low scores. Does nothing on processors other than x86-64.
inline void flush_subnormals(bool flush = true) {
#ifdef __x86_64__
  constexpr unsigned results_to_zero = 1U << 15, operands_to_zero = 1U << 6, both = results_to_zero | operands_to_zero;
  _mm_setcsr(flush ? _mm_getcsr() | both : _mm_getcsr() & ~both);
#endif
}

/// Returns true if the calling thread treats subnormals as zero.
inline bool flushes_subnormals() {
  const volatile float least = std::numeric_limits<float>::min(), half = 0.5F;
  return least * half == 0;
}

}  // namespace heed
