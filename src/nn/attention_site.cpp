#include "heed/nn/attention_site.h"

#include "heed/ops/attention_capabilities.h"

namespace heed {

template <class T>
Tensor<T> attention_maps(const AttentionSite<T>& site) {
  const Shape image = map_shape(site.mechanism, site.inputs.front().shape);
  Tensor<T> maps(Shape{static_cast<Index>(site.inputs.size()), image[0], image[1], image[2]});
  T* to = maps.data();
  for (const AttentionInput<T>& in : site.inputs) {
    require(map_shape(site.mechanism, in.shape) == image,
            "{}: examples with {} and with {} tokens have maps of different sizes; expected examples of equal length",
            site.layer, site.inputs.front().shape.queries, in.shape.queries);
    make_map(site.mechanism, in, to);
    to += image.elements();
  }
  return maps;
}

template Tensor<float> attention_maps(const AttentionSite<float>&);
template Tensor<double> attention_maps(const AttentionSite<double>&);

}  // namespace heed
