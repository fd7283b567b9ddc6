// AdamW in one pass over a tensor.
#pragma once

#include "heed/cost/counts.h"

#include <cmath>

namespace heed::kernels {

/// Settings of a step of AdamW. Loshchilov, Hutter, "Decoupled weight decay regularization", arXiv:1711.05101v3,
/// Algorithm 2, with weight decay scaled by the learning rate, as in PyTorch.
struct AdamWStep {
  double lr = 0, beta1 = 0.9, beta2 = 0.999, eps = 1e-8, weight_decay = 0;
  double correction1 = 1, correction2 = 1;  ///< 1 - beta^t for step t, counted from 1
  double gradient_factor = 1;               ///< clipping factor of the gradient
};

inline namespace reference {

/// Updates w, m and v. With g = gradient_factor gradient:
///   w -= lr weight_decay w
///   m = beta1 m + (1 - beta1) g,  v = beta2 v + (1 - beta2) g^2
///   w -= lr / correction1 m / (sqrt(v / correction2) + eps)
/// w, gradient, m, v [n] must not overlap. Fast float: relative error of m, v and the update at most 2^-21 if m and the
/// gradient have the same sign, so that nothing cancels; rounding w adds 2^-23 |w|. If lr / correction1 m is subnormal,
/// its absolute error is at most 2^-148.
template <class T>
void adamw(const AdamWStep& step, Index n, T* w, const T* gradient, T* m, T* v) {
  using std::sqrt;
  for (Index i = 0; i < n; ++i) {
    const T g = T(step.gradient_factor) * gradient[i];
    m[i] = T(step.beta1) * m[i] + T(1 - step.beta1) * g;
    v[i] = T(step.beta2) * v[i] + T(1 - step.beta2) * g * g;
    const T denominator = sqrt(v[i] / T(step.correction2)) + T(step.eps);
    w[i] = w[i] * T(1 - step.lr * step.weight_decay) - T(step.lr / step.correction1) * m[i] / denominator;
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast version for float.
void adamw(const AdamWStep& step, Index n, float* w, const float* gradient, float* m, float* v);
#endif

/// Returns the counts for n weights: those of g, m, v, the denominator and w.
inline Counts adamw_counts(Index n) {
  return n * (Counts{.mul = 1} + Counts{.mul = 2, .add = 1} + Counts{.mul = 3, .add = 1} +
              Counts{.add = 1, .div = 1, .sqrt = 1} + Counts{.mul = 2, .add = 1, .div = 1});
}

}  // namespace heed::kernels
