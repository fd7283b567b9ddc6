// exp and log(1 + x) for loops that the compiler vectorises. The float versions are short polynomials without branches;
// a function call per element takes ten times as long. double, and float in a build without SIMD, use base/math.h.
// Counted has its own versions (cost/counted.h).
#pragma once

#include "heed/base/math.h"

#include <bit>
#include <cmath>
#include <cstdint>

namespace heed::kernels {

/// Returns exp(x) with the error of base/math.h.
inline double exp(double x) { return math::exp(x); }

/// Returns log(1 + x) for 0 <= x <= 1, without cancellation for small x.
inline double log_1_plus(double x) { return math::log1p(x); }

/// Returns log(1 + x) for number types other than float and double.
template <class T>
T log_1_plus(T x) {
  return log(T(1) + x);
}

#ifdef HEED_NO_SIMD

inline float exp(float x) { return math::exp(x); }
inline float log_1_plus(float x) { return math::log1p(x); }

#else

/// Coefficients of exp r = 1 + r + c2 r^2 + ... + c6 r^6, the polynomial of least relative error over |r| <= (ln 2) / 2
/// (Remez exchange). Its error is 2.7e-8, since the coefficient of r, 1 + 5e-8, is rounded to 1.
namespace exp_polynomial {
inline constexpr float c2 = 0.500000043f, c3 = 1.66663653e-1f, c4 = 4.16647767e-2f, c5 = 8.37902083e-3f;
inline constexpr float c6 = 1.40612663e-3f;
}  // namespace exp_polynomial

namespace detail {

/// Returns a b + c, fused if the CPU has FMA.
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}

}  // namespace detail

/// Returns exp x with a relative error of at most 2.5e-7 + 6e-9 |x|. Returns 0 for x < -87.33 (exp x is subnormal below
/// -87.337), infinity for x > 88.37 (2^n overflows above 88.376, exp x above 88.72), and NaN for NaN.
///
/// x = n ln 2 + r with n the nearest integer. Adding 1.5 2^23 rounds x / ln 2 to n and leaves n in the low bits; with
/// the exponent bias 127 added too, these bits shifted into the exponent field are 2^n. n ln 2 is subtracted in two
/// parts, the first of which is exact.
[[gnu::always_inline]] inline float exp(float x) {
  using namespace exp_polynomial;
  using detail::multiply_add;
  const float shifted = multiply_add(x, 1.44269504f, 0x1.8p23f + 127.0f);
  const float n = shifted - (0x1.8p23f + 127.0f);
  const float r = multiply_add(n, 2.12194440e-4f, multiply_add(n, -0.693359375f, x));
  float p = multiply_add(c6, r, c5);
  p = multiply_add(p, r, c4);
  p = multiply_add(p, r, c3);
  p = multiply_add(p, r, c2);
  p = multiply_add(p, r, 1.0f);
  p = multiply_add(p, r, 1.0f);
  const float power = std::bit_cast<float>(std::bit_cast<std::uint32_t>(shifted) << 23);
  const float result = p * power;
  return x > 88.37f ? HUGE_VALF : x < -87.33f ? 0.0f : result;
}

/// Returns log(1 + x) for 0 <= x <= 1 with a relative error of at most 3e-7: log(1 + x) = 2 artanh z with
/// z = x / (2 + x) <= 1/3, and the series z + z^3 / 3 + z^5 / 5 + ... is truncated at a remainder below 2e-8.
[[gnu::always_inline]] inline float log_1_plus(float x) {
  using detail::multiply_add;
  const float z = x / (2.0f + x), square = z * z;
  float sum = multiply_add(1.0f / 15, square, 1.0f / 13);
  sum = multiply_add(sum, square, 1.0f / 11);
  sum = multiply_add(sum, square, 1.0f / 9);
  sum = multiply_add(sum, square, 1.0f / 7);
  sum = multiply_add(sum, square, 1.0f / 5);
  sum = multiply_add(sum, square, 1.0f / 3);
  sum = multiply_add(sum, square, 1.0f);
  return 2.0f * z * sum;
}

#endif

}  // namespace heed::kernels
