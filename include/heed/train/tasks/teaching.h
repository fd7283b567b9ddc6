// Teacher targets without labels: sharpened and centred distributions over the outputs of the teacher's head. Caron et
// al., arXiv:2104.14294v2, Section 3.1.
#pragma once

#include "heed/base/tensor.h"

#include <vector>

namespace heed {

/// A teacher's targets, their entropies, and the mean of its logits.
template <class T>
struct Teaching {
  Tensor<T> q{};                    ///< [B, 2, K] like the logits, or any shape whose last axis is K
  Tensor<T> mean{};                 ///< [K], mean of the logits over all rows
  double entropy = 0;               ///< mean over rows of -q . log q
  std::vector<double> entropies{};  ///< entropy of each row
};

/// Computes targets from the logits. Reuses the memory of `earlier` if it has the same size.
template <class T>
Teaching<T> teach(View<const T> logits, View<const T> center, double temperature, Teaching<T> earlier = {});

/// Updates center = momentum center + (1 - momentum) mean.
template <class T>
void move_center(View<T> center, View<const T> mean, double momentum);

}  // namespace heed
