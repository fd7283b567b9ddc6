#include "heed/base/math.h"

#include "heed/base/error.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace heed::math {

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();

/// ln 2 and pi / 2, each as a sum of parts. All but the last part have few enough bits that their products with the
/// integers n below are exact.
constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
constexpr double half_pi_1 = 0x1.921fb544p+0, half_pi_2 = 0x1.0b4611a6p-34, half_pi_3 = 0x1.3198a2e037073p-69;

/// Adding this constant to x, |x| <= 2^51, and subtracting it again rounds x to the nearest integer.
constexpr double rounder = 0x1.8p52;

/// Returns c0 + c1 x + c2 x^2 + ...
template <class... Coefficients>
double polynomial(double x, double c0, Coefficients... rest) {
  if constexpr (sizeof...(rest) == 0)
    return c0;
  else
    return c0 + x * polynomial(x, rest...);
}

/// A number as the sum of two doubles; the second is at most of the order of the rounding error of the first.
struct Two {
  double high, low;
};

/// Returns exp(x.high + x.low), computed as 2^n times the series of exp r, where n is x / ln 2, rounded to an integer,
/// and r = x - n ln 2; |r| is at most (ln 2) / 2, up to rounding.
double exp_of(Two x) {
  if (!(x.high < 709.8)) return x.high > 0 ? infinity : x.high;  // the last case is NaN
  if (x.high < -745.2) return 0;
  const double shifted = x.high * 1.4426950408889634 + rounder, n = shifted - rounder;
  const double r = (x.high - n * ln2_high) - (n * ln2_low - x.low);
  // 1 / k! for k = 2 to 13: the remainder is below 5e-18.
  const double series = polynomial(r, 1. / 2, 1. / 6, 1. / 24, 1. / 120, 1. / 720, 1. / 5040, 1. / 40320, 1. / 362880,
                                   1. / 3628800, 1. / 39916800, 1. / 479001600, 1. / 6227020800);
  // Multiplies by 2^n in two factors, since n may be outside the range of exponents.
  const auto power_of_2 = [](std::int64_t k) { return std::bit_cast<double>((k + 1023) << 52); };
  const auto whole = static_cast<std::int64_t>(n), half = whole / 2;
  return (1 + (r + r * r * series)) * power_of_2(half) * power_of_2(whole - half);
}

/// Decomposition x = 2^exponent (1 + f) with sqrt(1/2) < 1 + f <= sqrt(2), up to rounding.
struct Parts {
  double exponent, f;
};

/// Returns the parts of x > 0.
Parts parts_of(double x) {
  double exponent = 0;
  if (x < std::numeric_limits<double>::min()) x *= 0x1p54, exponent = -54;  // subnormal
  const auto bits = std::bit_cast<std::uint64_t>(x);
  exponent += static_cast<double>(static_cast<std::int64_t>(bits >> 52) - 1023);
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > 0x1.6a09e667f3bcdp+0) m /= 2, exponent += 1;
  return {exponent, m - 1};
}

/// Returns (2 artanh s - 2 s) / s for z = s^2 <= 0.0295: the sum of 2 z^k / (2 k + 1) for k = 1 to 10.
double artanh_rest(double z) {
  return z * polynomial(z, 2. / 3, 2. / 5, 2. / 7, 2. / 9, 2. / 11, 2. / 13, 2. / 15, 2. / 17, 2. / 19, 2. / 21);
}

/// Returns log x for 0 < x < infinity with a relative error below 2^-56; f / (2 + f) is computed in double-double.
Two long_log(double x) {
  const auto [exponent, f] = parts_of(x);
  const double sum = 2 + f, sum_low = f - (sum - 2);
  const double s = f / sum, s_low = (std::fma(-s, sum, f) - s * sum_low) / sum;
  const double rest = 2 * s_low + s * artanh_rest(s * s);
  const double whole = exponent * ln2_high, sum_of_both = whole + 2 * s;
  const double low = ((whole - sum_of_both) + 2 * s) + (exponent * ln2_low + rest), high = sum_of_both + low;
  return {high, (sum_of_both - high) + low};
}

/// Decomposition x = k pi / 2 + r with |r| <= pi / 4.
struct Quarters {
  std::int64_t k;
  double r;
};

Quarters quarters_of(double x) {
  const double n = (x * 0.63661977236758134 + rounder) - rounder;
  const double a = x - n * half_pi_1, b = n * half_pi_2, r = a - b;
  return {static_cast<std::int64_t>(n), r + (((a - r) - b) - n * half_pi_3)};
}

/// Return sin r and cos r for |r| <= pi / 4. The remainders of the series are below 1e-19 and 2.1e-18.
double sin_of(double r) {
  const double z = r * r;
  return r + r * z *
                 polynomial(z, -1. / 6, 1. / 120, -1. / 5040, 1. / 362880, -1. / 39916800, 1. / 6227020800,
                            -1. / 1307674368000, 1. / 355687428096000);
}
double cos_of(double r) {
  const double z = r * r, half = z / 2, most = 1 - half;
  return most + (((1 - most) - half) + z * z *
                                           polynomial(z, 1. / 24, -1. / 720, 1. / 40320, -1. / 3628800, 1. / 479001600,
                                                      -1. / 87178291200, 1. / 20922789888000));
}

/// Returns sin(x + quarter_turns pi / 2) for |x| <= 1e6; NaN if x is not finite.
double sin_from(double x, int quarter_turns) {
  if (!std::isfinite(x)) return nan;
  HEED_ASSERT(std::abs(x) <= 1e6);
  const auto [k, r] = quarters_of(x);
  const std::int64_t turn = (k + quarter_turns) & 3;
  const double value = turn % 2 == 0 ? sin_of(r) : cos_of(r);
  return turn < 2 ? value : -value;
}

}  // namespace

double exp(double x) { return exp_of({x, 0}); }

double log(double x) {
  if (!(x > 0)) return x == 0 ? -infinity : nan;
  if (x == infinity) return x;
  const auto [exponent, f] = parts_of(x);
  // log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + rest) with s = f / (2 + f): f, the largest term, is exact.
  const double s = f / (2 + f), half_square = f * f / 2;
  const double rest = s * (half_square + artanh_rest(s * s)) + exponent * ln2_low;
  return exponent * ln2_high - ((half_square - rest) - f);
}

double log1p(double x) {
  const double sum = 1 + x;
  if (sum == 1 || sum == infinity) return x;
  return log(sum) * (x / (sum - 1));  // the errors of log(sum) and sum - 1 cancel
}

double sin(double x) { return x == 0 ? x : sin_from(x, 0); }
double cos(double x) { return sin_from(x, 1); }

double tanh(double x) {
  const double size = std::abs(x), z = x * x;
  // Continued fraction x / (1 + z / (3 + z / (5 + ... + z / 17))).
  if (size < 0.55)
    return x * polynomial(z, 34459425, 4729725, 135135, 990, 1) / polynomial(z, 34459425, 16216200, 945945, 13860, 45);
  return std::copysign(1 - 2 / (exp(2 * size) + 1), x);
}

double pow(double x, double y) {
  if (x == 1 || y == 0) return 1;
  if (std::isnan(x) || std::isnan(y)) return nan;
  const bool whole = std::floor(y) == y, odd = std::abs(std::fmod(y, 2)) == 1;
  const double size = std::abs(x);
  const double sign = std::signbit(x) && odd ? -1 : 1;
  if (x < 0 && !whole && size != infinity) return nan;
  if (size == 0 || size == infinity) return sign * ((size == 0) == (y > 0) ? 0 : infinity);
  if (size == 1) return sign;
  const Two log_x = long_log(size);
  const double high = y * log_x.high, low = std::fma(y, log_x.high, -high) + y * log_x.low;
  return sign * (std::isfinite(high) ? exp_of({high, low}) : high > 0 ? infinity : 0);
}

}  // namespace heed::math
