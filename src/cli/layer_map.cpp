#include "layer_map.h"

namespace heed::cli {

LayerMap::LayerMap(const AttentionSite<float>& site) : mechanism_(site.mechanism.name()) {
  const AttentionShape& shape = site.inputs.front().shape;
  grid_ = {shape.grid_height, shape.grid_width};
  class_token_ = shape.class_token;
  const MechanismTraits traits = site.mechanism.traits();
  if (!traits.map) return;
  maps_ = attention_maps(site);
  of_channels_ = traits.map_axes == MapAxes::channels;
}

BlockWeights LayerMap::weights(std::optional<Patch> query, PatchGrid grid) const {
  BlockWeights block{.mechanism = mechanism_, .of_channels = of_channels_};
  if (!exists()) return block;
  const Shape all = maps_.shape();  // [1, heads, N, M]
  const View<const float> maps(maps_.data(), Shape{all[1], all[2], all[3]});
  if (query)
    query = Patch{(2 * query->row + 1) * grid_.rows / (2 * grid.rows),
                  (2 * query->column + 1) * grid_.columns / (2 * grid.columns)};
  block.weights = of_channels_ ? channel_weights(maps) : patch_weights(maps, grid_, query);
  return block;
}

}  // namespace heed::cli
