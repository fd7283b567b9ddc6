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

/// The model of an experiment, of the family that [model] names. Throws Error with the nearest name if there is none
/// of that name, or if it has no such model.
std::unique_ptr<Model> make_model(const Experiment& experiment);

}  // namespace heed
