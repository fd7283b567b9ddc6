#include "heed/packed_weights.h"

#include "heed/counted.h"
#include "heed/parallel.h"

namespace heed {

template <class T>
void PackedWeights<T>::pack(Products products, const Parameters<T>& parameters) {
  if constexpr (std::is_same_v<T, float> && kernels::packs_weights) {
    const ParameterList& list = parameters.list();
    weights_.resize(static_cast<std::size_t>(list.size()));
    parallel_for(list.size(), [&](Index i) {
      const ParameterId id = static_cast<ParameterId>(i);
      const Shape& shape = list[id].shape;
      if (list[id].multiplied)
        weights_[static_cast<std::size_t>(i)].pack(products, shape[0], shape[1], parameters[id].data());
    });
  }
}

template class PackedWeights<float>;
template class PackedWeights<double>;
template class PackedWeights<Counted>;

}  // namespace heed
