// Targets of a teacher without labels: sharpened and centred distributions over the outputs of its head. Caron et al.,
// arXiv:2104.14294v2, Section 3.1.
#pragma once

#include "heed/base/tensor.h"

#include <vector>

namespace heed {

/// A teacher's targets, and statistics of its logits.
template <class T>
struct Teaching {
  Tensor<T> q{};                    ///< [B, 2, K] as the logits, or any other shape whose last axis is K
  Tensor<T> mean{};                 ///< [K], of the logits over all rows
  double entropy = 0;               ///< mean over rows of -q . log q
  std::vector<double> entropies{};  ///< of rows
};

/// Computes targets of the logits. Reuses the memory of `earlier`, if it is of the same size.
template <class T>
Teaching<T> teach(View<const T> logits, View<const T> center, double temperature, Teaching<T> earlier = {});

/// Updates center = momentum center + (1 - momentum) mean.
template <class T>
void move_center(View<T> center, View<const T> mean, double momentum);

}  // namespace heed
