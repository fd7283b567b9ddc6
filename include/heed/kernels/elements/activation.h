// Element-wise activations and their gradients. Arrays have n elements.
#pragma once

#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"
#include "heed/cost/counts.h"

#include <cmath>
#include <numbers>
#include <type_traits>

namespace heed::kernels {

inline namespace reference {

/// Computes gelu, y = x Phi(x) with the normal distribution function Phi: (x / 2) (1 + erf(x / sqrt 2)). y may be x.
/// Hendrycks, Gimpel, "Gaussian error linear units", arXiv:1606.08415. Fast float: absolute error at most 4e-7
/// max(1, |x|); 0 at -inf, where the formula is 0 times infinity.
template <class T>
void gelu_forward(Index n, const T* x, T* y) {
  using std::erf;
  for (Index i = 0; i < n; ++i) {
    const T phi = T(1) + erf(x[i] * T(std::numbers::sqrt2 / 2));
    y[i] = T(0.5) * x[i] * phi;
  }
}

/// Computes dx (+)= dy (Phi(x) + x phi(x)) with the normal density phi(x) = exp(-x^2 / 2) / sqrt(2 pi) and, unless y is
/// nullptr, y = gelu(x), bitwise equal to gelu_forward(). dx may be dy. Fast float: absolute error of the factor of dy
/// at most 1e-6; the factor is 1 at +inf and 0 at -inf.
template <class T>
void gelu_backward(Index n, const T* x, const T* dy, Update update, T* dx, T* y = nullptr) {
  using std::erf;
  constexpr double density_at_zero = std::numbers::inv_sqrtpi * std::numbers::sqrt2 / 2;
  for (Index i = 0; i < n; ++i) {
    const T distribution = T(0.5) * (T(1) + erf(x[i] * T(std::numbers::sqrt2 / 2)));
    const T density = T(density_at_zero) * exp(T(-0.5) * x[i] * x[i]);
    write(update, dx[i], dy[i] * (distribution + x[i] * density));
    if (y) y[i] = x[i] * distribution;
  }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void gelu_forward(Index n, const float* x, float* y);
void gelu_backward(Index n, const float* x, const float* dy, Update update, float* dx, float* y = nullptr);
#endif

/// Returns the counts for n elements.
inline Counts gelu_forward_counts(Index n) { return n * Counts{.mul = 3, .add = 1, .erf = 1}; }

/// Returns the counts for Update::assign. gelu_again_counts() returns the additional counts for y.
inline Counts gelu_backward_counts(Index n) { return n * Counts{.mul = 7, .add = 2, .exp = 1, .erf = 1}; }
inline Counts gelu_again_counts(Index n) { return {.mul = n}; }

/// Computes y = max(x, 0). y may be x.
template <class T>
void relu_forward(Index n, const T* x, T* y) {
  for (Index i = 0; i < n; ++i) y[i] = x[i] > T(0) ? x[i] : T(0);
}

/// Returns the counts for n elements.
inline Counts relu_forward_counts(Index n) { return {.cmp = n}; }

/// Computes dx (+)= dy where x > 0, with relu'(0) = 0, and, unless y is nullptr, y = max(x, 0). dx may be dy.
template <class T>
void relu_backward(Index n, const T* x, const T* dy, Update update, T* dx, T* y = nullptr) {
  for (Index i = 0; i < n; ++i) {
    const bool positive = x[i] > T(0);
    write(update, dx[i], positive ? dy[i] : T(0));
    if (y) y[i] = positive ? x[i] : T(0);
  }
}

/// Returns the counts for Update::assign. relu_again_counts() returns the additional counts for y.
inline Counts relu_backward_counts(Index n) { return {.cmp = n}; }
inline Counts relu_again_counts(Index) { return {}; }

/// The function p in y = x s(p(x)), with the logistic function s(z) = 1 / (1 + exp(-z)); here p(x) = x. `slope` is p',
/// `p_counts` are the counts of p and `slope_counts` those of p'.
struct Silu {
  template <class T>
  static T p(T x) {
    return x;
  }
  template <class T>
  static T slope(T) {
    return T(1);
  }
  static constexpr Counts p_counts{}, slope_counts{};
};

/// The quick approximation of gelu: p(x) = 1.702 x. Hendrycks, Gimpel, arXiv:1606.08415, Section 2.
struct QuickGelu {
  template <class T>
  static T p(T x) {
    return T(1.702) * x;
  }
  template <class T>
  static T slope(T) {
    return T(1.702);
  }
  static constexpr Counts p_counts{.mul = 1}, slope_counts{};
};

/// The tanh approximation of gelu, x / 2 (1 + tanh(u)) with u = sqrt(2 / pi) (x + 0.044715 x^3), which equals x s(2 u).
struct TanhGelu {
  static constexpr double a = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, b = a * 0.044715;
  template <class T>
  static T p(T x) {
    return x * (T(a) + T(b) * (x * x));
  }
  template <class T>
  static T slope(T x) {
    return T(a) + T(3 * b) * (x * x);
  }
  static constexpr Counts p_counts{.mul = 3, .add = 1}, slope_counts{.mul = 2, .add = 1};
};

/// Computes y = x s(p(x)). y may be x. If exp(-p) overflows, y is -0, the correct limit. Relative error: a few eps,
/// plus |p| eps. For Silu: Elfwing, Uchibe, Doya, "Sigmoid-weighted linear units", arXiv:1702.03118.
template <class P, class T>
void logistic_forward(Index n, const T* x, T* y) {
  for (Index i = 0; i < n; ++i) y[i] = x[i] / (T(1) + exp(-P::p(x[i])));
}

/// Returns the counts for n elements.
template <class P>
Counts logistic_forward_counts(Index n) {
  return n * (P::p_counts + Counts{.add = 1, .div = 1, .exp = 1});
}

/// Computes dx (+)= dy s (1 + x p' (1 - s)) and, unless y is nullptr, y = x s, which may differ from logistic_forward()
/// in the last bit. dx may be dy.
template <class P, class T>
void logistic_backward(Index n, const T* x, const T* dy, Update update, T* dx, T* y = nullptr) {
  for (Index i = 0; i < n; ++i) {
    const T s = T(1) / (T(1) + exp(-P::p(x[i])));
    const T slope = std::is_same_v<P, Silu> ? x[i] : x[i] * P::slope(x[i]);
    write(update, dx[i], dy[i] * (s * (T(1) + slope * (T(1) - s))));
    if (y) y[i] = x[i] * s;
  }
}

/// Returns the counts for Update::assign. logistic_again_counts() returns the additional counts for y.
template <class P>
Counts logistic_backward_counts(Index n) {
  const Counts slope = P::slope_counts + Counts{.mul = std::is_same_v<P, Silu> ? 0 : 1};
  return n * (P::p_counts + slope + Counts{.mul = 3, .add = 3, .div = 1, .exp = 1});
}
template <class P>
Counts logistic_again_counts(Index n) {
  return {.mul = n};
}

}  // namespace heed::kernels
