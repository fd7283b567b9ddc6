// The range of float32.
#pragma once

#include <cmath>
#include <limits>

namespace heed {

/// Returns true if `number` is finite but beyond float32's largest number, or nonzero but rounded to 0 by float32.
inline bool exceeds_float(double number) {
  const double size = std::abs(number);
  return std::isfinite(number) &&
         (size > std::numeric_limits<float>::max() || (size > 0 && static_cast<float>(size) == 0));
}

/// Description of valid numbers, for error messages.
inline constexpr const char* within_float = "a number that float32 rounds neither to 0 nor to infinity";

}  // namespace heed
