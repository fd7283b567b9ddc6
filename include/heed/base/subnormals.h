// Numbers nearer to zero than any normal one: below 1.2e-38 in float, 2.2e-308 in double.
#pragma once

#include <limits>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace heed {

/// From now on the calling thread, and threads that it starts, take such numbers for zero, as operands and as results.
/// Intel's processors need more than a hundred cycles for an instruction that meets one, and in training there are
/// many: gradients that die out, in SOFT's Newton-Raphson steps for one, and exponentials of low scores. Does nothing
/// on processors other than x86-64.
inline void flush_subnormals() {
#ifdef __x86_64__
  constexpr unsigned results_to_zero = 1U << 15, operands_to_zero = 1U << 6;
  _mm_setcsr(_mm_getcsr() | results_to_zero | operands_to_zero);
#endif
}

/// Does the calling thread take them for zero?
inline bool flushes_subnormals() {
  const volatile float least = std::numeric_limits<float>::min(), half = 0.5F;
  return least * half == 0;
}

}  // namespace heed
