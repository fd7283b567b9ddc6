#include "heed/nn/model.h"

namespace heed {

const char* Model::example_name() const { return example().images.shape().rank() > 0 ? "image" : "sequence"; }

Shape Model::image_shape() const {
  const Shape images = example().images.shape();
  require(images.rank() == 4, "[model] this model takes no images");
  return Shape{images[1], images[2], images[3]};
}

}  // namespace heed
