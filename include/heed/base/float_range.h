// Which numbers float32 holds.
#pragma once

#include <cmath>
#include <limits>

namespace heed {

/// Is this finite number too large for a float, or one that is not 0 so small that a float rounds it to 0?
inline bool exceeds_float(double number) {
  const double size = std::abs(number);
  return std::isfinite(number) &&
         (size > std::numeric_limits<float>::max() || (size > 0 && static_cast<float>(size) == 0));
}

/// What is expected instead.
inline constexpr const char* within_float = "a number that float32 rounds neither to 0 nor to infinity";

}  // namespace heed
