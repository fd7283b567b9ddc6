// Ends the program with an error line if the CPU lacks instructions that the program was compiled for (ARCH in the
// Makefile).
#include <unistd.h>

#include <cstdio>

#ifdef __x86_64__

namespace {

/// Returns an instruction set that the compiler was allowed to use and this CPU lacks; null if there is none. The
/// function itself is compiled for instructions that every CPU has.
__attribute__((target("general-regs-only,no-bmi,no-bmi2"))) const char* lacking() {
  __builtin_cpu_init();
#ifdef __SSE4_2__
  if (!__builtin_cpu_supports("sse4.2")) return "SSE4.2";
#endif
#ifdef __POPCNT__
  if (!__builtin_cpu_supports("popcnt")) return "POPCNT";
#endif
#ifdef __AVX__
  if (!__builtin_cpu_supports("avx")) return "AVX";
#endif
#ifdef __AVX2__
  if (!__builtin_cpu_supports("avx2")) return "AVX2";
#endif
#ifdef __FMA__
  if (!__builtin_cpu_supports("fma")) return "FMA";
#endif
#ifdef __F16C__
  if (!__builtin_cpu_supports("f16c")) return "F16C";
#endif
#ifdef __BMI__
  if (!__builtin_cpu_supports("bmi")) return "BMI";
#endif
#ifdef __BMI2__
  if (!__builtin_cpu_supports("bmi2")) return "BMI2";
#endif
#ifdef __LZCNT__
  if (!__builtin_cpu_supports("lzcnt")) return "LZCNT";
#endif
#ifdef __MOVBE__
  if (!__builtin_cpu_supports("movbe")) return "MOVBE";
#endif
#ifdef __GFNI__
  if (!__builtin_cpu_supports("gfni")) return "GFNI";
#endif
#ifdef __AVXVNNI__
  if (!__builtin_cpu_supports("avxvnni")) return "AVX-VNNI";
#endif
#ifdef __AVX512F__
  if (!__builtin_cpu_supports("avx512f")) return "AVX-512 F";
#endif
#ifdef __AVX512CD__
  if (!__builtin_cpu_supports("avx512cd")) return "AVX-512 CD";
#endif
#ifdef __AVX512BW__
  if (!__builtin_cpu_supports("avx512bw")) return "AVX-512 BW";
#endif
#ifdef __AVX512DQ__
  if (!__builtin_cpu_supports("avx512dq")) return "AVX-512 DQ";
#endif
#ifdef __AVX512VL__
  if (!__builtin_cpu_supports("avx512vl")) return "AVX-512 VL";
#endif
#ifdef __AVX512IFMA__
  if (!__builtin_cpu_supports("avx512ifma")) return "AVX-512 IFMA";
#endif
#ifdef __AVX512VBMI__
  if (!__builtin_cpu_supports("avx512vbmi")) return "AVX-512 VBMI";
#endif
#ifdef __AVX512VBMI2__
  if (!__builtin_cpu_supports("avx512vbmi2")) return "AVX-512 VBMI2";
#endif
#ifdef __AVX512VNNI__
  if (!__builtin_cpu_supports("avx512vnni")) return "AVX-512 VNNI";
#endif
#ifdef __AVX512BITALG__
  if (!__builtin_cpu_supports("avx512bitalg")) return "AVX-512 BITALG";
#endif
#ifdef __AVX512VPOPCNTDQ__
  if (!__builtin_cpu_supports("avx512vpopcntdq")) return "AVX-512 VPOPCNTDQ";
#endif
#ifdef __AVX512BF16__
  if (!__builtin_cpu_supports("avx512bf16")) return "AVX-512 BF16";
#endif
#ifdef __AVX512FP16__
  if (!__builtin_cpu_supports("avx512fp16")) return "AVX-512 FP16";
#endif
  return nullptr;
}

/// Runs before main and before constructors of static objects, which may use any instruction: constructors without a
/// priority run after all that have one.
__attribute__((constructor(101), target("general-regs-only,no-bmi,no-bmi2"))) void check_cpu() {
  const char* const name = lacking();
  if (name == nullptr) return;
  std::fprintf(stderr,
               "heed: this CPU has no %s, which this program was compiled for (ARCH=" HEED_ARCH
               "); heed runs here if it is built from source on this machine, after make clean\n",
               name);
  _exit(2);
}

}  // namespace

#endif
