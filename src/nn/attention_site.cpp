#include "heed/nn/attention_site.h"

#include "heed/ops/attention.h"

namespace heed {

template <class T>
Tensor<T> attention_maps(const AttentionSite<T>& site) {
  const AttentionShape& s = site.inputs.front().shape;
  const auto [rows, columns] = site.mechanism.map_size(s);
  Tensor<T> maps(Shape{static_cast<Index>(site.inputs.size()), s.heads, rows, columns});
  T* to = maps.data();
  for (const AttentionInput<T>& in : site.inputs) {
    make_map(site.mechanism, in, to);
    to += s.heads * rows * columns;
  }
  return maps;
}

template Tensor<float> attention_maps(const AttentionSite<float>&);
template Tensor<double> attention_maps(const AttentionSite<double>&);

}  // namespace heed
