// Patterns of errors: what a wrong tensor has to do with the right one (heed/checks/diagnosis.h).
#pragma once

#include "heed/checks/diagnosis.h"

namespace heed {

/// Parts of two tensors, row-major and without gaps.
struct ErrorPart {
  std::vector<std::string> axes;
  std::vector<Index> sizes;
  Shape whole;  ///< shape of the whole tensor
  std::vector<double> got, expected;
  Likeness same;
};

struct ErrorPattern {
  ErrorKind kind = ErrorKind::unknown;
  std::string text{};
  std::vector<std::string> factors{};  ///< explanations of a factor in words, "1/sqrt(channels)"
};

/// The pattern that says most of those that all of the part has.
ErrorPattern pattern_of(const ErrorPart& part);

/// The same of the patterns whose numbers stand in other places, or unknown. Only whole tensors show them.
ErrorPattern displacement_of(const ErrorPart& whole);

}  // namespace heed
