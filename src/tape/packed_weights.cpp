#include "heed/tape/packed_weights.h"

#include "heed/cost/counted.h"
#include "heed/base/parallel.h"

namespace heed {

template <class T>
void PackedWeights<T>::pack(Products products, const Parameters<T>& parameters, bool gradients) {
  if constexpr (std::is_same_v<T, float> && kernels::packs_weights) {
    const ParameterList& list = parameters.list();
    weights_.resize(static_cast<std::size_t>(list.size()));
    parallel_for(list.size(), [&](Index i) {
      const ParameterId id = static_cast<ParameterId>(i);
      if (!list[id].multiplied) return;
      LinearWeight& arranged = weights_[static_cast<std::size_t>(i)];
      const Matrix<const float> weight(parameters[id].data(), list[id].shape[0], list[id].shape[1]);
      arranged.forward.pack(products, transposed(weight));
      if (gradients) arranged.backward.pack(products, weight);
    });
  }
}

template class PackedWeights<float>;
template class PackedWeights<double>;
template class PackedWeights<Counted>;

}  // namespace heed
