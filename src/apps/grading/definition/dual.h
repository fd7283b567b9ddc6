// Dual numbers: a value with its derivative, for gradients that are exact except for rounding.
#pragma once

#include "heed/base/math.h"

#include <cmath>
#include <numbers>

namespace heed {

/// A double with its derivative with respect to one input.
struct Dual {
  double value = 0, slope = 0;

  Dual() = default;
  Dual(double value, double slope = 0) : value(value), slope(slope) {}

  friend Dual operator-(Dual a) { return {-a.value, -a.slope}; }
  friend Dual operator+(Dual a, Dual b) { return {a.value + b.value, a.slope + b.slope}; }
  friend Dual operator-(Dual a, Dual b) { return {a.value - b.value, a.slope - b.slope}; }
  friend Dual operator*(Dual a, Dual b) { return {a.value * b.value, a.slope * b.value + a.value * b.slope}; }
  friend Dual operator/(Dual a, Dual b) {
    return {a.value / b.value, (a.slope - a.value / b.value * b.slope) / b.value};
  }
  Dual& operator+=(Dual b) { return *this = *this + b; }
  Dual& operator/=(Dual b) { return *this = *this / b; }
};

inline Dual sqrt(Dual x) { return {std::sqrt(x.value), x.slope / (2 * std::sqrt(x.value))}; }
inline Dual exp(Dual x) { return {math::exp(x.value), x.slope * math::exp(x.value)}; }
inline Dual log(Dual x) { return {math::log(x.value), x.slope / x.value}; }
inline Dual erf(Dual x) {
  return {std::erf(x.value), x.slope * 2 / std::sqrt(std::numbers::pi) * math::exp(-x.value * x.value)};
}

}  // namespace heed
