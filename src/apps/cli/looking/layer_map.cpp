#include "layer_map.h"

#include "heed/attention/capabilities/map.h"
#include "heed/ops/attention_capabilities.h"

namespace heed::cli {

Patch patch_in(PatchGrid grid, PatchGrid first, Patch patch) {
  return {(2 * patch.row + 1) * grid.rows / (2 * first.rows),
          (2 * patch.column + 1) * grid.columns / (2 * first.columns)};
}

Tensor<float> map_of(const AttentionSite<float>& site) {
  Tensor<float> map(map_shape(site.mechanism, site.inputs.front().shape));
  make_map(site.mechanism, site.inputs.front(), map.data());
  return map;
}

void for_each_map(const AttentionSite<float>& site, const std::function<void(View<const float>)>& f) {
  const AttentionInput<float>& all = site.inputs.front();
  const bool one_by_one = site.mechanism.traits().independent_heads && all.parameters.empty() && !all.prepared.data;
  if (!one_by_one) return f(map_of(site).view());
  AttentionInput<float> in = all;
  in.shape.heads = 1;
  Tensor<float> map(map_shape(site.mechanism, in.shape));
  for (Index h = 0; h < all.shape.heads; ++h) {
    in.q.first = all.q[h], in.k.first = all.k[h], in.v.first = all.v[h];
    make_map(site.mechanism, in, map.data());
    f(std::as_const(map).view());
  }
}

}  // namespace heed::cli
