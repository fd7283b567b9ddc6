// Patterns of errors: relations of a wrong tensor to the correct one (heed/checks/diagnosis.h).
#pragma once

#include "heed/checks/diagnosis.h"

namespace heed {

/// Corresponding parts of two tensors, row-major and contiguous.
struct ErrorPart {
  std::span<const std::string> axes;
  Shape whole;  ///< shape of the whole tensor
  Likeness same;
  std::vector<Index> sizes{};
  std::vector<double> got{}, expected{};
};

struct ErrorPattern {
  ErrorKind kind = ErrorKind::unknown;
  std::string text{};
  std::vector<std::string> factors{};  ///< explanations of a factor in words, "1/sqrt(channels)"
};

/// Returns the most specific pattern that holds for the whole part.
ErrorPattern pattern_of(const ErrorPart& part);

/// Returns the most specific pattern of displaced elements that holds for whole tensors, otherwise unknown.
ErrorPattern displacement_of(const ErrorPart& whole);

}  // namespace heed
