// Capability of mechanisms: a matrix that the mechanism inverts, for those who measure how well it does.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// The interface for callers: Mechanism::inverse(). A mechanism derives from it directly.
class InverseCapability {
 public:
  virtual ~InverseCapability() = default;

  /// Returns the matrix of each head that is inverted, [heads, m, m].
  virtual Tensor<float> inverted(const AttentionInput<float>& in) const = 0;
};

}  // namespace heed
