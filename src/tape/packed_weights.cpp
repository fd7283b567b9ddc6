#include "heed/tape/packed_weights.h"

#include "heed/cost/counted.h"
#include "heed/base/parallel.h"
#include "heed/kernels/grids/windows.h"

namespace heed {

template <class T>
void PackedWeights<T>::pack(Products products, const Parameters<T>& parameters, bool gradients) {
  if constexpr (std::is_same_v<T, float> && kernels::packs_weights) {
    const ParameterList& list = parameters.list();
    weights_.resize(static_cast<std::size_t>(list.size()));
    parallel_for(list.size(), [&](Index i) {
      const ParameterId id = static_cast<ParameterId>(i);
      const Multiplied multiplied = list[id].multiplied;
      if (multiplied == Multiplied::no) return;
      LinearWeight& packed = weights_[static_cast<std::size_t>(i)];
      const View<const float> weight = parameters[id];
      const Index outputs = list[id].shape[0], inputs = list[id].shape.elements() / outputs;
      if (multiplied == Multiplied::linear) return packed.pack(products, {weight.data(), outputs, inputs}, gradients);
      thread_local Buffer<float> memory;
      if (memory.size() < outputs * inputs) memory = Buffer<float>(outputs * inputs);
      const Matrix<float> by_windows(memory.data(), outputs, inputs);
      kernels::gather_weights(weight, by_windows);
      packed.pack(products, by_windows, gradients && multiplied == Multiplied::convolution);
      if (!gradients || multiplied == Multiplied::convolution) return;
      const Index channels = list[id].shape[1];
      const Matrix<float> reversed(memory.data(), channels, outputs * inputs / channels);
      kernels::gather_reversed_weights(weight, reversed);
      packed.backward.pack(products, transposed(reversed));
    });
  }
}

template class PackedWeights<float>;
template class PackedWeights<double>;
template class PackedWeights<Counted>;

}  // namespace heed
