// List of model families.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/model.h"

#include <memory>
#include <span>

namespace heed {

/// An entry of the list of families.
struct ModelFamily {
  const char* name;
  /// Creates the trainable model of an experiment. Throws Error if [model] and [attention] are invalid.
  std::unique_ptr<Model> (*make)(const Experiment& experiment);
};

/// Returns all families.
std::span<const ModelFamily> model_families();

/// Creates the trainable model of an experiment, of the family named in [model]: with a classifier, or for
/// self-supervision as in nn/dino.h. Throws Error for an unknown family, with the nearest name, and for an invalid
/// model.
std::unique_ptr<Model> make_model(const Experiment& experiment);

/// Creates the model of an experiment without any head: its logits are its features.
std::unique_ptr<Model> make_backbone(const Experiment& experiment);

/// Compares two models built for different image sizes. Returns the name of the first common tensor, apart from
/// position embeddings, whose shape or initial values differ; empty if the models can share their tensors.
std::string tensor_of_one_size(const ParameterList& a, const ParameterList& b);

}  // namespace heed
