// The list of model families.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/model.h"

#include <memory>
#include <span>

namespace heed {

/// One line of the list of families.
struct ModelFamily {
  const char* name;
  /// The model of an experiment, as it is trained; throws Error if [model] and [attention] describe none.
  std::unique_ptr<Model> (*make)(const Experiment& experiment);
};

/// All families.
std::span<const ModelFamily> model_families();

/// The model of an experiment as it is trained, of the family that [model] names: with a classifier, or for
/// self-supervision as nn/dino.h has it. Throws Error with the nearest name if there is no family of that name, or if
/// it has no such model.
std::unique_ptr<Model> make_model(const Experiment& experiment);

/// The same model without a head of any kind: its logits are its features.
std::unique_ptr<Model> make_backbone(const Experiment& experiment);

/// Of two models that differ in the size of their images: the name of the first tensor, position embeddings apart, that
/// is another one in each. Empty if there is none, and the models can have the same tensors.
std::string tensor_of_one_size(const ParameterList& a, const ParameterList& b);

}  // namespace heed
