// Flushing of subnormal numbers to zero: magnitudes below 1.2e-38 in float, 2.2e-308 in double.
#pragma once

#include <cstdint>
#include <limits>

#ifdef __x86_64__
#include <xmmintrin.h>
#endif

namespace heed {

/// Makes the calling thread, and threads that it starts, treat subnormal operands and results as zero; with `flush`
/// false, restores the default. Intel's processors take more than a hundred cycles for an instruction with a subnormal,
/// and training produces many: vanishing gradients, for example in SOFT's Newton-Raphson steps, and exps of low scores.
/// Does nothing on processors other than x86-64 and arm64.
inline void flush_subnormals(bool flush = true) {
#if defined(__x86_64__)
  constexpr unsigned results_to_zero = 1U << 15, operands_to_zero = 1U << 6, both = results_to_zero | operands_to_zero;
  _mm_setcsr(flush ? _mm_getcsr() | both : _mm_getcsr() & ~both);
#elif defined(__aarch64__)
  constexpr std::uint64_t both = std::uint64_t{1} << 24;
  std::uint64_t control = 0;
  asm volatile("mrs %0, fpcr" : "=r"(control));
  control = flush ? control | both : control & ~both;
  asm volatile("msr fpcr, %0" : : "r"(control));
#endif
}

/// Returns true if the calling thread treats subnormals as zero.
inline bool flushes_subnormals() {
  const volatile float least = std::numeric_limits<float>::min(), half = 0.5F;
  return least * half == 0;
}

}  // namespace heed
