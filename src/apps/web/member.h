// A model that the page looks at.
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
  /// As a run's configuration says, with `sets` as those of `heed train --set`. Its weights are those of a file, or,
  /// where that is empty, those that training begins with. Throws Error if the model is no Vision Transformer that
  /// classifies images, or the weights are another model's.
  Member(const std::string& config, const std::vector<std::string>& sets, const std::string& weights);

  const Experiment& experiment() const { return experiment_; }
  const VisionTransformer& model() const { return model_; }
  Parameters<float>& parameters() { return parameters_; }

  /// Its mechanism, number of weights, classes by name, sizes, and configuration.
  Json description() const;

  /// Probabilities of the classes for an image of any size: what `heed predict` prints for those pixels.
  std::vector<double> predict(const Image& image);

  /// The same, "probabilities", and for each block, "blocks", what there is to see of its attention: {"layer",
  /// "mechanism", "pictures"}, the first of which is the map if it has one. A picture is {"name", "meaning", "axes",
  /// "part", "identity", "numbers"}: the identity is a part of a map such as A + I. "seen" are the bytes of the image
  /// as the model is given it.
  void look(const Image& image, Reply& reply);

  /// Writes the weights as `heed eval --weights` takes them.
  void save(const std::string& path) const;

 private:
  Image seen(const Image& image) const;
  Tensor<float> input(const Image& seen) const;

  Experiment experiment_;
  VisionTransformer model_;
  Parameters<float> parameters_;
};

}  // namespace heed::web
