// Patterns of errors: what a wrong tensor has to do with the right one (heed/checks/diagnosis.h).
#pragma once

#include "heed/checks/diagnosis.h"

namespace heed {

/// Two tensors of the same sizes, row-major; at each index of each axis something is wrong.
struct ErrorPart {
  std::vector<std::string> axes;
  std::vector<Index> sizes;
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
