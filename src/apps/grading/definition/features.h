// The feature functions of definitions.
#pragma once

#include "heed/cost/counted.h"
#include "definition.h"

#include <cmath>

namespace heed {

/// A feature as text, in which {c} and {x} stand for c and x; its value and slope as C++, in which y = c x and
/// s = 1 / (1 + exp(-y)); and the costs of both.
struct FeatureInfo {
  const char* text;
  const char *value, *slope;  ///< slope: derivative with respect to x
  Counts value_counts, slope_counts;
};

inline const FeatureInfo& info_of(Feature feature) {
  static const FeatureInfo infos[] = {
      {"{x}", "x", "T(1)", {}, {}},
      {"1 / (1 + exp(-{c} {x}))",
       "T(1) / (T(1) + exp(-y))",
       "c * s * (T(1) - s)",
       {.mul = 1, .add = 1, .div = 1, .exp = 1},
       {.mul = 3, .add = 2, .div = 1, .exp = 1}},
      {"log(1 + exp({c} {x}))",
       "log(T(1) + exp(y))",
       "c * s",
       {.mul = 1, .add = 1, .exp = 1, .log = 1},
       {.mul = 2, .add = 1, .div = 1, .exp = 1}},
      {"1 + ({c} {x})^2", "T(1) + y * y", "T(2) * c * y", {.mul = 2, .add = 1}, {.mul = 3}},
      {"sqrt(1 + ({c} {x})^2)",
       "sqrt(T(1) + y * y)",
       "c * y / sqrt(T(1) + y * y)",
       {.mul = 2, .add = 1, .sqrt = 1},
       {.mul = 3, .add = 1, .div = 1, .sqrt = 1}},
      {"exp({c} {x})", "exp(y)", "c * exp(y)", {.mul = 1, .exp = 1}, {.mul = 2, .exp = 1}},
      {"{c} {x} / (1 + exp(-{c} {x}))",
       "y / (T(1) + exp(-y))",
       "c * s * (T(1) + y * (T(1) - s))",
       {.mul = 1, .add = 1, .div = 1, .exp = 1},
       {.mul = 4, .add = 3, .div = 1, .exp = 1}},
      {"erf({c} {x})",
       "erf(y)",
       "c * T(2 / std::sqrt(std::numbers::pi)) * exp(-(y * y))",
       {.mul = 1, .erf = 1},
       {.mul = 4, .exp = 1}},
  };
  return infos[static_cast<std::size_t>(feature)];
}

template <class T>
T value_of(const FeatureMap& map, T x) {
  using std::erf, std::exp, std::log, std::sqrt;
  if (map.feature == Feature::identity) return x;
  const T y = T(map.c) * x;
  if (map.feature == Feature::sigmoid) return T(1) / (T(1) + exp(-y));
  if (map.feature == Feature::softplus) return log(T(1) + exp(y));
  if (map.feature == Feature::square) return T(1) + y * y;
  if (map.feature == Feature::root) return sqrt(T(1) + y * y);
  if (map.feature == Feature::exp) return exp(y);
  if (map.feature == Feature::silu) return y / (T(1) + exp(-y));
  return erf(y);
}

}  // namespace heed
