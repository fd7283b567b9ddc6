#include "heed/bench/instructions.h"

#ifndef HEED_NO_BLAS
#include <cblas.h>
#endif
#ifndef HEED_NO_SIMD
#include "heed/kernels/shared/simd.h"
#endif

#include <fmt/format.h>

#include <cstdlib>

namespace heed::bench {

namespace {

/// Returns the width of the CPU's vectors in bits; 0 if unknown.
int bits_of_cpu() {
#ifdef __x86_64__
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq"))
    return 512;
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 256 : 128;
#else
  return 0;
#endif
}

}  // namespace

int bits_of_blas(const std::string& core) {
  for (const char* name : {"SkylakeX", "Cooperlake", "SapphireRapids"})
    if (core == name) return 512;
  for (const char* name : {"Haswell", "Zen", "Sandybridge", "Bulldozer", "Piledriver", "Steamroller", "Excavator"})
    if (core == name) return 256;
  return 128;
}

std::vector<std::string> narrow_parts() {
  std::vector<std::string> lines;
  [[maybe_unused]] const int cpu = bits_of_cpu();
#ifndef HEED_NO_BLAS
  const std::string core = openblas_get_corename();
  if (const int bits = bits_of_blas(core); bits < cpu) {
    const char* const chosen = std::getenv("OPENBLAS_CORETYPE");
    lines.push_back(fmt::format(
        "OpenBLAS uses its {} kernels with vectors of {} bits; this CPU has {}; {}", core, bits, cpu,
        chosen ? fmt::format("unset OPENBLAS_CORETYPE, which is {}", chosen) : "install an OpenBLAS that supports it"));
  }
#endif
#ifndef HEED_NO_SIMD
  if (constexpr int bits = 32 * kernels::simd::lanes; bits < cpu)
    lines.push_back(fmt::format("heed is compiled for vectors of {} bits (ARCH=" HEED_ARCH
                                "); this CPU has {}; compile it without ARCH",
                                bits, cpu));
#endif
  return lines;
}

}  // namespace heed::bench
