// The weights of a model's linear layers, arranged for their products.
#pragma once

#include "heed/kernels/packed_weight.h"
#include "heed/parameters.h"

namespace heed {

/// Arranged copies of the weights that are `multiplied`; none where there is nothing to gain: in double, and in a build
/// of plain loops. They are those of the last call of pack().
template <class T>
class PackedWeights {
 public:
  /// Arranges the weights as they are now, on all threads. Keeps its memory from one call to the next.
  void pack(Products products, const Parameters<T>& parameters);

  /// null where there is none.
  const kernels::PackedWeight* find(ParameterId id) const {
    const auto i = static_cast<std::size_t>(id);
    return i < weights_.size() && weights_[i].data() ? &weights_[i] : nullptr;
  }

 private:
  std::vector<kernels::PackedWeight> weights_;  ///< by ParameterId
};

}  // namespace heed
