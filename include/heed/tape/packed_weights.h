// The weights of a model's linear layers, arranged for their products.
#pragma once

#include "heed/kernels/products/packed_weight.h"
#include "heed/base/parameters.h"

namespace heed {

/// A weight W [out, in], arranged for x W^T, and where gradients are wanted for dy W.
struct LinearWeight {
  kernels::PackedWeight forward, backward;
};

/// Arranged copies of the weights that are `multiplied`; none where there is nothing to gain: in double, and in a
/// build without SIMD. They are those of the last call of pack().
template <class T>
class PackedWeights {
 public:
  /// Arranges the weights as they are now, on all threads, for x W^T and with `gradients` for dy W too; without,
  /// LinearWeight::backward stays empty. Keeps its memory from one call to the next.
  void pack(Products products, const Parameters<T>& parameters, bool gradients);

  /// null where there is none.
  const LinearWeight* find(ParameterId id) const {
    const auto i = static_cast<std::size_t>(id);
    return i < weights_.size() && weights_[i].forward.data() ? &weights_[i] : nullptr;
  }

 private:
  std::vector<LinearWeight> weights_;  ///< by ParameterId
};

}  // namespace heed
