// Patterns of errors: what a wrong tensor has to do with the right one (heed/checks/diagnosis.h).
#pragma once

#include "heed/checks/diagnosis.h"

namespace heed {

/// Parts of two tensors, row-major and without gaps; at each index of each axis something is wrong.
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
};

/// The first pattern that all of the part has.
ErrorPattern pattern_of(const ErrorPart& part);

}  // namespace heed
