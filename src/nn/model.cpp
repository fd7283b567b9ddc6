#include "heed/nn/model.h"

namespace heed {

const char* Model::example_name() const { return example().images.shape().rank() > 0 ? "image" : "sequence"; }

Shape Model::image_shape() const {
  const Shape images = example().images.shape();
  require(images.rank() >= 4, "[model] this model does not accept images");
  return Shape{images[-3], images[-2], images[-1]};
}

void Model::require_features(Index blocks) const {
  const Index most = feature_sizes().blocks;
  require(most > 0, "[model] this model has no features: it does not accept images");
  require(blocks >= 1 && blocks <= most, "[model] features of the last {} blocks; expected 1 to {} blocks", blocks,
          most);
}

}  // namespace heed
