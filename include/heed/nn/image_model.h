// The common part of image models.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/model.h"

namespace heed {

/// Returns the shape of attention among the patches of a square grid and, if there is one, the class token before them.
inline AttentionShape grid_shape(Index side, bool class_token) {
  const Index tokens = side * side + class_token;
  return {.queries = tokens, .keys = tokens, .grid_height = side, .grid_width = side, .class_token = class_token};
}

/// A model of square images that tells classes apart. Derived as ModelBase says.
template <class Derived>
class ImageModel : public ModelBase<Derived> {
 public:
  /// Throws Error if the configuration is not valid.
  explicit ImageModel(const Experiment& experiment) : config_(experiment.model) { validate(experiment); }

  ModelInput<float> example() const override {
    return {.images = {nullptr, Shape{1, config_.channels, config_.image, config_.image}}};
  }
  Shape outputs() const override { return Shape{config_.classifier ? config_.classes : this->feature_sizes().width}; }

 protected:
  /// Throws Error unless these are images as the model takes them.
  void require_images(const Shape& images) const {
    require(
        images.rank() == 4 && images[1] == config_.channels && images[2] == config_.image && images[3] == config_.image,
        "[model] images have shape {}; expected [B, {}, {}, {}]", images, config_.channels, config_.image,
        config_.image);
  }

  ModelConfig config_;
};

/// One of them with batch norm, whose images of a step therefore depend on each other.
template <class Derived>
class BatchNormModel : public ImageModel<Derived> {
 public:
  using ImageModel<Derived>::ImageModel;

  bool examples_depend(Index batch) const override {
    const Index group = this->config_.bn_group;
    require(group == 0 || batch % group == 0, "[model] bn_group = {} does not divide the batch of {} images", group,
            batch);
    return true;
  }
};

}  // namespace heed
