// How well a model does on examples that it does not learn from.
#pragma once

#include "heed/train/step.h"

#include <atomic>

namespace heed {

/// The loss is not a finite number, in training or evaluation.
struct Diverged : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Goes once through `source`, which must not be a training one, all processes together. `counts` is the task's. If
/// `interrupt` becomes true, stops early; the result then covers fewer examples than there are. Throws Diverged where
/// the loss is not finite.
template <class T>
Evaluation evaluate(const Model& model, Parameters<T>& parameters, BatchSource<T>& source, Index counts, Index piece,
                    const std::atomic<bool>* interrupt = nullptr, Ranks& ranks = one_process());

}  // namespace heed
