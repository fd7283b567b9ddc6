// A model of the page.
#pragma once

#include "reply.h"

#include "heed/data/images/image.h"
#include "heed/nn/vit.h"

#include <string>
#include <vector>

namespace heed::web {

/// A Vision Transformer and its weights.
class Member {
 public:
  /// Constructs a run's model from its configuration, with `sets` as for `heed train --set`. The weights are read from
  /// the file `weights` or, if that name is empty, initialised as for training. Throws Error if the model is not a
  /// Vision Transformer that classifies images of mnist or fashion-mnist, or if the weights belong to another model.
  Member(const std::string& config, const std::vector<std::string>& sets, const std::string& weights);

  const Experiment& experiment() const { return experiment_; }
  const VisionTransformer& model() const { return model_; }
  Parameters<float>& parameters() { return parameters_; }

  /// Returns the mechanism, number of weights, class names, sizes, and configuration.
  Json description() const;

  /// Returns the class probabilities for an image of any size: those of `heed predict` for the same pixels, except for
  /// rounding.
  std::vector<double> predict(const Image& image);

  /// Replies with "probabilities"; with "seen", the bytes of the model's input; and with "blocks", a list of {"layer",
  /// "mechanism", "pictures"}, in which the map is the first picture if there is one. A picture is {"name", "meaning",
  /// "axes", "part", "identity", "numbers"}; "identity" is true if the map includes the identity, as A + I does.
  void look(const Image& image, Reply& reply);

  /// Writes the weights in the format of `heed eval --weights`.
  void save(const std::string& path) const;

 private:
  Image seen(const Image& image) const;
  Tensor<float> input(const Image& seen) const;

  Experiment experiment_;
  VisionTransformer model_;
  Parameters<float> parameters_;
};

}  // namespace heed::web
