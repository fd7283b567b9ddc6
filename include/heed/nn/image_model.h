// Common base of image models.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/model.h"
#include "heed/ops/conv2d.h"

#include <string>

namespace heed {

/// Returns the attention shape for the patches of a grid preceded by `prefix` tokens.
inline AttentionShape grid_shape(Sides grid, Index prefix) {
  const Index tokens = grid.height * grid.width + prefix;
  return {
      .queries = tokens, .keys = tokens, .grid_height = grid.height, .grid_width = grid.width, .class_token = prefix};
}

/// Base of image models; CRTP as in ModelBase.
template <class Derived>
class ImageModel : public ModelBase<Derived> {
 public:
  /// Throws Error if the configuration is invalid.
  explicit ImageModel(const Experiment& experiment) : config_(experiment.model) { validate(experiment); }

  ModelInput<float> example() const override {
    return {.images = {nullptr, Shape{1, config_.channels, config_.image.height, config_.image.width}}};
  }
  Shape outputs() const override { return Shape{config_.classifier ? config_.classes : this->feature_sizes().width}; }

 protected:
  /// Throws Error unless the images have the model's shape.
  void require_images(const Shape& images) const {
    const auto [height, width] = config_.image;
    require(images.rank() == 4 && images[1] == config_.channels && images[2] == height && images[3] == width,
            "[model] images have shape {}; expected [B, {}, {}, {}]", images, config_.channels, height, width);
  }

  ModelConfig config_;
};

/// Base of image models with batch norm, which makes the results of the images of a step depend on each other.
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

 protected:
  /// Returns the pixels of the images as rows [B, height * width, channels]. Throws Error unless the images have the
  /// model's shape.
  template <class T>
  Var<T> pixels_of(const ModelPass<T>& pass) const {
    this->require_images(pass.examples.images.shape());
    const typename Tape<T>::Scope scope(pass.tape, layer_of_pixels_);
    return pixel_rows(pass.tape.constant(pass.examples.images));
  }

 private:
  std::string layer_of_pixels_ = "pixels";
};

}  // namespace heed
