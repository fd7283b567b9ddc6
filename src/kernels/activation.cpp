// gelu and its derivative, both from one exponential. With t = |x|, e = exp(-t^2 / 2) and 1 - Phi(t) = e R(t):
//   gelu(x)  = max(x, 0) - t e R(t), because Phi(-t) = 1 - Phi(t);
//   gelu'(x) = 1 - G for x > 0 and G otherwise, where G = e (R(t) - t / sqrt(2 pi)).
#include "heed/kernels/activation.h"

#ifndef HEED_REFERENCE

#include "simd.h"

namespace heed::kernels {

using namespace simd;

void gelu_forward(Index n, const float* x, float* y) {
  const Exp exp;
  const NormalTail tail;
  const Vector end = constant(NormalTail::end), minus_half = constant(-0.5f), zero = hn::Zero(tag);
  for_each_vector(n, [&](Index i, auto use) {
    const Vector v = use.load(x + i), t = hn::Min(hn::Abs(v), end);
    const Vector e = exp.below_88(hn::Mul(hn::Mul(v, minus_half), v));
    use.store(hn::NegMulAdd(hn::Mul(t, e), tail(t), hn::Max(v, zero)), y + i);
  });
}

void gelu_backward(Index n, const float* x, const float* dy, Update update, float* dx, float* y) {
  const Exp exp;
  const NormalTail tail;
  const Vector end = constant(NormalTail::end), minus_half = constant(-0.5f), one = constant(1.0f);
  const Vector zero = hn::Zero(tag);
  const Vector density_at_zero = constant(static_cast<float>(std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2));
  for_each_vector(n, [&](Index i, auto use) {
    const Vector v = use.load(x + i), t = hn::Min(hn::Abs(v), end);
    const Vector e = exp.below_88(hn::Mul(hn::Mul(v, minus_half), v)), te = hn::Mul(t, e), r = tail(t);
    const Vector g = hn::NegMulAdd(te, density_at_zero, hn::Mul(e, r));
    const Vector factor = hn::IfThenElse(hn::Gt(v, zero), hn::Sub(one, g), g);
    write(update, use, hn::Mul(use.load(dy + i), factor), dx + i);
    if (y) use.store(hn::NegMulAdd(te, r, hn::Max(v, zero)), y + i);
  });
}

}  // namespace heed::kernels

#endif
