// Handling of losses and gradients that are not finite.
#pragma once

#include "src/train/runs/checkpoint.h"

#include <string>
#include <vector>

namespace heed {

/// The buffers of the model and its teacher before a step, for steps that are skipped (train.on_nonfinite).
template <class T>
class SavedBuffers {
 public:
  void save(RunState<T>& state);
  void restore(RunState<T>& state) const;

 private:
  std::vector<T> values_;
};

/// Returns whether all weights and buffers are finite.
template <class T>
bool all_finite(const Parameters<T>& parameters);

/// Throws Diverged. `what` says where and how, `saved` which weights exist, `lr` is the current learning rate.
[[noreturn]] void fail_diverged(const std::string& what, const RunProgress& progress, const std::string& saved,
                                double lr);

}  // namespace heed
