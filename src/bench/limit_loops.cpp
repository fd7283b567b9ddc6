#ifndef HEED_NO_SIMD

#include "limit_loops.h"

#include "heed/kernels/shared/simd.h"

namespace heed::bench {

using namespace kernels::simd;

namespace {

/// Number of independent sums. Two units with a latency of 4 cycles need 8 sums; alternating max and fma need 12 for
/// the full rate: with 10 sums, Zen 4 reaches 52 of 59 Gelem/s. If there are only 16 registers, 6 are needed for
/// operands, so 10 are left for sums.
constexpr int chains = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 16 : 10;

/// Hides the value of v from the compiler, which would otherwise compute a loop's terms once before the loop.
void hide(Vector& v) {
#if HWY_ARCH_X86
  asm volatile("" : "+v"(v.raw));
#else
  asm volatile("" : "+m"(v));
#endif
}

template <class AddTerm>
void run(Index steps, AddTerm add_term) {
  Vector x = set(1.0f), w = set(0.5f), sums[chains];
  for (Vector& sum : sums) sum = hn::Zero(tag);
  for (Index i = 0; i < steps; ++i)
#pragma GCC unroll 16
    for (Vector& sum : sums) {
      hide(x);
      sum = add_term(sum, x, w);
    }
#pragma GCC unroll 16
  for (Vector& sum : sums) hide(sum);
}

}  // namespace

const Index terms_per_step = chains * lanes;

void multiply_add(Index steps) {
  run(steps, [](Vector sum, Vector x, Vector w) { return hn::MulAdd(x, w, sum); });
}

void l1_by_maxima(Index steps) {
  run(steps, [two = constant(2.0f)](Vector sum, Vector x, Vector w) { return hn::NegMulAdd(hn::Max(x, w), two, sum); });
}

void clamp_difference(Index steps) {
  const Vector g = constant(0.25f);
  run(steps, [=, clamp = Clamp()](Vector sum, Vector x, Vector w) {
    return hn::MulAdd(g, clamp(clamp.fused_difference(w, x)), sum);
  });
}

void clamp_by_turns(Index steps) {
  const Vector g = constant(0.25f);
  run(steps, [=, clamp = Clamp(), fused = false](Vector sum, Vector x, Vector w) mutable {
    fused = !fused;
    return hn::MulAdd(g, clamp(fused ? clamp.fused_difference(w, x) : hn::Sub(w, x)), sum);
  });
}

void clamp_shifted(Index steps) {
  const Vector below = constant(-0.5f), above = constant(1.5f), g = constant(0.25f);
  run(steps, [=](Vector sum, Vector x, Vector w) {
    return hn::MulAdd(g, hn::Sub(hn::Min(hn::Max(x, below), above), w), sum);
  });
}

void exp_of(Index n, const float* x, float* y) {
  const Exp exp;
  for_each_vector(n, [&](Index i, auto use) { use.store(exp.below_88(use.load(x + i)), y + i); });
}

void triad(Index n, float* block) {
  const Vector three = constant(3.0f);
  const float *const y = block + n, *const z = y + n;
  for (Index i = 0; i < n; i += lanes)
    hn::Store(hn::MulAdd(three, hn::Load(tag, z + i), hn::Load(tag, y + i)), tag, block + i);
}

// The data are zeros, so they do not overflow.
void scale(Index n, float* block) {
  const Vector three = constant(3.0f);
  for (Index i = 0; i < n; i += lanes) hn::Store(hn::Mul(three, hn::Load(tag, block + i)), tag, block + i);
}

void read(Index n, float* block) {
  Vector sums[4];
  for (Vector& sum : sums) sum = hn::Zero(tag);
  for (Index i = 0; i < n; i += 4 * lanes)
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) sums[j] = hn::Add(sums[j], hn::Load(tag, block + i + j * lanes));
#pragma GCC unroll 4
  for (Vector& sum : sums) hide(sum);
}

}  // namespace heed::bench

#endif
