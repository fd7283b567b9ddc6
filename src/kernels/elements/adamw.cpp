#include "heed/kernels/elements/adamw.h"

#ifndef HEED_NO_SIMD

#include "heed/kernels/shared/simd.h"

namespace heed::kernels {

using namespace simd;

// One pass over four arrays, 28 bytes per element: memory-bound unless the arrays fit the L2 cache.
void adamw(const AdamWStep& step, Index n, float* w, const float* gradient, float* m, float* v) {
  const auto number = [](double x) { return set(static_cast<float>(x)); };
  const Vector factor = number(step.gradient_factor), eps = number(step.eps);
  const Vector beta1 = number(step.beta1), rest1 = number(1 - step.beta1);
  const Vector beta2 = number(step.beta2), rest2 = number(1 - step.beta2);
  const Vector keep = number(1 - step.lr * step.weight_decay), rate = number(step.lr / step.correction1);
  const Vector share = number(1 / step.correction2);
  for_each_vector(n, [&](Index i, auto use) {
    const Vector g = hn::Mul(factor, use.load(gradient + i)), old = use.load(w + i);
    const Vector new_m = hn::MulAdd(beta1, use.load(m + i), hn::Mul(rest1, g));
    const Vector new_v = hn::MulAdd(beta2, use.load(v + i), hn::Mul(hn::Mul(rest2, g), g));
    const Vector denominator = hn::Add(hn::Sqrt(hn::Mul(new_v, share)), eps);
    use.store(new_m, m + i);
    use.store(new_v, v + i);
    use.store(hn::MulSub(keep, old, hn::Div(hn::Mul(rate, new_m), denominator)), w + i);
  });
}

}  // namespace heed::kernels

#endif
