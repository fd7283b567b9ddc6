// The task of an experiment.
#include "heed/train/tasks/classification.h"
#include "tasks.h"

namespace heed {

template <class T>
std::unique_ptr<Task<T>> make_task(const Experiment& experiment, const Model& model, bool any_size) {
  if (experiment.self_supervised()) return make_dino<T>(experiment, model);
  const bool sequences = model.example().sequences.tokens.shape().rank() > 0;
  if (!sequences && model.outputs().rank() == 2) return make_patch_classification<T>(experiment, model);
  if (!sequences) return std::make_unique<Classification<T>>(experiment, model, any_size);
  if (model.outputs().rank() == 2) return make_language<T>(experiment, model);
  return make_sequence_classification<T>(experiment, model);
}

template std::unique_ptr<Task<float>> make_task(const Experiment&, const Model&, bool);
template std::unique_ptr<Task<double>> make_task(const Experiment&, const Model&, bool);

}  // namespace heed
