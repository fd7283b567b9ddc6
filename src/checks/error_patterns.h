// Patterns of errors: what a wrong tensor has to do with the right one (heed/checks/diagnosis.h).
#pragma once

#include "heed/checks/diagnosis.h"

namespace heed {

/// Parts of two tensors, row-major and without gaps.
struct ErrorPart {
  std::vector<std::string> axes;
  std::vector<Index> sizes;
  Shape whole;  ///< that they are parts of
  std::vector<double> got, expected;
  Likeness same;
};

struct ErrorPattern {
  ErrorKind kind = ErrorKind::unknown;
  std::string text{};
  std::vector<std::string> factors{};  ///< of a factor: what it may be in words, "1/sqrt(channels)"
};

/// The pattern that says most of those that all of the part has.
ErrorPattern pattern_of(const ErrorPart& part);

/// The same of the patterns whose numbers stand in other places, or unknown. Only whole tensors show them.
ErrorPattern displacement_of(const ErrorPart& whole);

}  // namespace heed
