// The kind of error that a wrong gradient shows.
#pragma once

#include "heed/base/tensor.h"

#include <span>
#include <string>
#include <vector>

namespace heed {

/// The relation of a wrong tensor to the right one, E.
enum class ErrorKind {
  none,         ///< no element is wrong
  not_finite,   ///< there are NaN or infinite numbers
  missing,      ///< 0
  superfluous,  ///< anything, where E is 0
  negative,     ///< -E
  factor,       ///< c E
  signs,        ///< E, of which some have the wrong sign
  transposed,   ///< E with two axes exchanged, or written column by column
  shifted,      ///< E moved along an axis
  reversed,     ///< E in the reverse order along an axis
  permuted,     ///< E in another order along an axis
  repeated,     ///< one slice of E for all indices of an axis
  summed,       ///< the sum of E over an axis, or its mean, for all indices of that axis
  offset,       ///< E + c
  factors,      ///< E with a factor for each index of an axis
  offsets,      ///< E and a term that is the same for all indices of an axis
  overwritten,  ///< E, but not added to what is there
  unknown,      ///< nothing that this list has
};

/// Its name: "negative".
const char* name_of(ErrorKind kind);

struct Diagnosis {
  Index elements = 0, wrong = 0;
  std::vector<Index> worst;      ///< index of the largest relative error, by axis
  double got = 0, expected = 0;  ///< there
  ErrorKind kind = ErrorKind::none;
  std::string looks;  ///< the kind in words: "like 0.5 times what it should be; 1/2, or 1/sqrt(4 channels)"
  std::vector<std::string> factors;  ///< explanations of a factor, without sizes: "1/2", "1/sqrt(channels)"
  std::string right;                 ///< the part that is right, if one is: "for head 0; wrong for heads 1 and 2"
};

/// When two numbers are the same: |a - b| <= relative max(|a|, |b|, floor).
struct Likeness {
  double relative, floor;
  double error(double a, double b) const;
  bool operator()(double a, double b) const { return error(a, b) <= relative; }
};

/// Returns the diagnosis of `got`, which should be `expected`; both have the same shape. `axes` are the names of its
/// axes, in the singular: "head". A kind is found only where all of the wrong part is so, and where more than one
/// number shows it.
Diagnosis diagnose(View<const double> got, View<const double> expected, std::span<const std::string> axes,
                   const Likeness& same);

/// Names for the axes of a tensor that nobody has named: "row" and "column" are the last two.
std::vector<std::string> usual_axes(const Shape& shape);

/// "head 2, token 7, channel 0"
std::string place_text(std::span<const std::string> axes, std::span<const Index> place);

/// The indices of an element, by axes.
std::vector<Index> place_of(const Shape& shape, Index element);

}  // namespace heed
