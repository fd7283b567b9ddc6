// Packed weights of a model's linear layers and convolutions.
#pragma once

#include "heed/kernels/products/packed_weight.h"
#include "heed/base/parameters.h"

namespace heed {

/// A weight W [out, in] packed for x W^T, and for dy W if gradients are computed. The W of a convolution is in the
/// order of its windows, [O, K K C]; if the convolution is centred, `backward` is packed for the windows of dy.
struct LinearWeight {
  kernels::PackedWeight forward, backward;

  void pack(Products products, Matrix<const float> W, bool gradients) {
    forward.pack(products, transposed(W));
    if (gradients) backward.pack(products, W);
  }

  /// Returns `backward`; null if it is not packed.
  const kernels::PackedWeight* for_gradients() const { return backward.data() ? &backward : nullptr; }
};

/// Packed copies, made by the last pack(), of the weights whose `multiplied` is not `no`. Empty for double and in
/// builds without SIMD, which do not use them.
template <class T>
class PackedWeights {
 public:
  /// Packs the current weights on all threads: for x W^T and, with `gradients`, for dy W. Reuses its memory.
  void pack(Products products, const Parameters<T>& parameters, bool gradients);

  /// Returns the packed copies of a weight; null if it has none.
  const LinearWeight* find(ParameterId id) const {
    const auto i = static_cast<std::size_t>(id);
    return i < weights_.size() && weights_[i].forward.data() ? &weights_[i] : nullptr;
  }

 private:
  std::vector<LinearWeight> weights_;  ///< by ParameterId
};

}  // namespace heed
