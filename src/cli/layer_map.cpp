#include "layer_map.h"

namespace heed::cli {

Patch patch_in(PatchGrid grid, PatchGrid first, Patch patch) {
  return {(2 * patch.row + 1) * grid.rows / (2 * first.rows),
          (2 * patch.column + 1) * grid.columns / (2 * first.columns)};
}

Tensor<float> map_of(const AttentionSite<float>& site) {
  const Tensor<float> maps = attention_maps(site);
  Tensor<float> map(map_shape(site.mechanism, site.inputs.front().shape));
  std::copy(maps.begin(), maps.end(), map.begin());
  return map;
}

LayerMap::LayerMap(const AttentionSite<float>& site) : mechanism_(site.mechanism.name()) {
  const AttentionShape& shape = site.inputs.front().shape;
  grid_ = {shape.grid_height, shape.grid_width};
  class_token_ = shape.class_token;
  const MechanismTraits traits = site.mechanism.traits();
  if (!traits.map) return;
  maps_ = map_of(site);
  of_channels_ = traits.map_axes == MapAxes::channels;
}

BlockWeights LayerMap::weights(std::optional<Patch> query, PatchGrid grid) const {
  BlockWeights block{.mechanism = mechanism_, .over_image = !of_channels_};
  if (!exists()) return block;
  if (query) query = patch_in(grid_, grid, *query);
  block.weights = of_channels_ ? matrix_weights(maps_.view()) : patch_weights(maps_.view(), grid_, query);
  return block;
}

}  // namespace heed::cli
