#include "heed/checks/tensor_difference.h"

#include <bit>
#include <cmath>
#include <limits>

namespace heed {

namespace {

/// Binary format of a number type: fraction bits, and exponent of the smallest normal number.
struct BinaryFormat {
  int fraction, least_exponent;
};

BinaryFormat format_of(DType type) {
  if (type == DType::F16) return {10, -14};
  if (type == DType::BF16) return {7, -126};
  if (type == DType::F32) return {23, -126};
  return {52, -1022};
}

double largest_finite(View<const double> x, double largest) {
  for (const double value : x)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  return largest;
}

ElementDifference element_difference(Index element, double a, double b, DType type, double floor) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return {element, a, b};
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (!std::isfinite(a) || !std::isfinite(b)) return {element, a, b, infinite, infinite, infinite};
  const double larger = std::max(std::abs(a), std::abs(b)), absolute = std::abs(a - b);
  return {element, a, b, absolute, absolute / std::max(larger, floor), absolute / unit_in_last_place(larger, type)};
}

}  // namespace

DType coarser(DType a, DType b) { return format_of(a).fraction < format_of(b).fraction ? a : b; }

double unit_in_last_place(double x, DType type) {
  const BinaryFormat format = format_of(type);
  const int exponent = x == 0 ? format.least_exponent : std::max(std::ilogb(x), format.least_exponent);
  return std::ldexp(1.0, exponent - format.fraction);
}

double rounding_error(DType type) {
  const bool stored_only = type == DType::F16 || type == DType::BF16;
  return (stored_only ? 4 : 1000) * unit_in_last_place(1, type);
}

TensorDifference difference_of(View<const double> a, View<const double> b, DType type, double tolerance) {
  TensorDifference found{.elements = a.size(), .largest = largest_finite(b, largest_finite(a, 0))};
  for (Index i = 0; i < a.size(); ++i) {
    if (std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i])) continue;
    ++found.unequal;
    const ElementDifference here = element_difference(i, a[i], b[i], type, 1e-3 * found.largest);
    found.rounding &= here.absolute <= rounding_error(type) * found.largest;
    if (here.relative > (found.worst ? found.worst->relative : 0)) found.worst = here;
    if (here.relative <= tolerance) continue;
    ++found.beyond;
    if (!found.first) found.first = here;
  }
  return found;
}

}  // namespace heed
