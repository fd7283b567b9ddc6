// Classification of errors in gradients.
#pragma once

#include "heed/base/tensor.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// Relation of a wrong tensor to the correct one, E.
enum class ErrorKind {
  none,         ///< no element is wrong
  not_finite,   ///< a wrong or an expected element is NaN or infinite
  missing,      ///< 0
  superfluous,  ///< nonzero, but E is 0
  negative,     ///< -E
  factor,       ///< c E
  signs,        ///< E with the wrong sign at some elements
  transposed,   ///< E with two axes exchanged, or stored column by column
  shifted,      ///< E moved along an axis
  reversed,     ///< E in reverse order along an axis
  permuted,     ///< E in a different order along an axis
  repeated,     ///< one slice of E for all indices of an axis
  summed,       ///< the sum or mean of E over an axis, at all indices of that axis
  offset,       ///< E + c
  factors,      ///< E times a different factor for each index of an axis
  offsets,      ///< E plus a term that is constant along an axis
  overwritten,  ///< E, assigned instead of accumulated
  unknown,      ///< no known pattern
};

/// Returns the name, for example "negative".
const char* name_of(ErrorKind kind);

/// The likely mistake in a wrong tensor, and its location.
struct Diagnosis {
  Index elements = 0, wrong = 0;
  std::vector<Index> worst;      ///< index of the largest relative error, by axis
  double got = 0, expected = 0;  ///< values at that element
  ErrorKind kind = ErrorKind::none;
  std::string looks;  ///< the kind in words: "like 0.5 times what it should be; perhaps 1/2, or 1/sqrt(4 channels)"
  std::vector<std::string> factors;  ///< explanations of a factor, without sizes: "1/2", "1/sqrt(channels)"
  std::string right;                 ///< the correct part, if any: "for head 0; wrong for heads 1 and 2"
};

/// Criterion for equal numbers: both are finite, and |a - b| <= relative max(|a|, |b|, floor).
struct Likeness {
  double relative, floor;
  double error(double a, double b) const;
  bool operator()(double a, double b) const { return error(a, b) <= relative; }
};

/// Returns the diagnosis of `got`, which should equal `expected`; both have the same shape. `axes` are the names of its
/// axes, in the singular: "head". For finite values, a kind is reported only if it fits the whole wrong part; if fewer
/// than two expected values there are nonzero, only missing, superfluous, negative, or a factor with a known meaning is
/// reported.
Diagnosis diagnose(View<const double> got, View<const double> expected, std::span<const std::string> axes,
                   const Likeness& same);

/// Returns the largest |x|; 0 if there are no values.
template <class Values>
double largest_magnitude(const Values& values) {
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

/// Returns default names for the axes of a tensor, all different: "element" for a vector, otherwise ending in "row",
/// "column".
std::vector<std::string> usual_axes(const Shape& shape);

/// Returns, for example, "head 2, token 7, channel 0".
std::string place_text(std::span<const std::string> axes, std::span<const Index> place);

/// Returns the indices of an element, by axis.
std::vector<Index> place_of(const Shape& shape, Index element);

}  // namespace heed
