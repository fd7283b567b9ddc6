// Capability of mechanisms: access to the matrix that they invert, to measure the accuracy of the inverse.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Interface for callers, returned by Mechanism::inverse(). Mechanisms derive from this class directly.
class InverseCapability {
 public:
  virtual ~InverseCapability() = default;

  /// Returns the matrix that each head inverts, [heads, m, m].
  virtual Tensor<float> inverted(const AttentionInput<float>& in) const = 0;
};

}  // namespace heed
