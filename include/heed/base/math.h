// Replacements for C library functions whose last bits differ between libraries and processors. They round only in
// sums, differences, products, quotients and fused multiply-adds, which IEEE 754 defines exactly, so they give the same
// bits everywhere. Special cases, such as log(0) = -infinity, are as in <cmath>; std::sqrt is correctly rounded and
// needs no replacement.
//
// u = 2^-53 is the unit roundoff of double. Results in float are rounded from double; their error is at most 0.501
// units in the last place.
#pragma once

namespace heed::math {

/// Returns e^x. Relative error at most 2 u, except for subnormal results, below 2.2e-308. Results are finite for x up
/// to 709.78 and 0 for x below about -745.13.
double exp(double x);

/// Returns the natural logarithm. Relative error at most 2 u.
double log(double x);

/// Returns log(1 + x), without cancellation for small x. Relative error at most 4 u.
double log1p(double x);

/// Return sine and cosine for |x| <= 10^6. Relative error at most 2 u.
double sin(double x);
double cos(double x);

/// Returns the hyperbolic tangent. Relative error at most 4 u.
double tanh(double x);

/// Returns x^y. Relative error at most (2 + |y log x| / 8) u.
double pow(double x, double y);

inline float exp(float x) { return static_cast<float>(exp(static_cast<double>(x))); }
inline float log(float x) { return static_cast<float>(log(static_cast<double>(x))); }
inline float log1p(float x) { return static_cast<float>(log1p(static_cast<double>(x))); }
inline float tanh(float x) { return static_cast<float>(tanh(static_cast<double>(x))); }
inline float pow(float x, float y) { return static_cast<float>(pow(static_cast<double>(x), static_cast<double>(y))); }

}  // namespace heed::math
