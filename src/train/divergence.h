// Handling of non-finite losses and gradients.
#pragma once

#include "heed/train/evaluate.h"
#include "src/train/runs/checkpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

namespace heed {

/// Copy of the model's and its teacher's buffers before a step, restored if the step is skipped (train.on_nonfinite).
template <class T>
class SavedBuffers {
 public:
  void save(RunState<T>& state) {
    values_.clear();
    for_buffers(state, [&](std::span<T> buffers) { values_.insert(values_.end(), buffers.begin(), buffers.end()); });
  }

  void restore(RunState<T>& state) const {
    auto saved = values_.begin();
    for_buffers(state, [&](std::span<T> buffers) {
      std::copy_n(saved, buffers.size(), buffers.begin());
      saved += static_cast<std::ptrdiff_t>(buffers.size());
    });
  }

 private:
  /// Calls f(buffers) for the model and its teacher.
  template <class F>
  static void for_buffers(RunState<T>& state, const F& f) {
    for (Parameters<T>* const p : {&state.parameters, state.task.teacher()})
      if (p) f(std::span(p->data() + p->gradient_size(), p->data() + p->size()));
  }

  std::vector<T> values_;
};

/// Returns true if all weights and buffers are finite.
template <class T>
bool all_finite(const Parameters<T>& parameters) {
  return std::all_of(parameters.data(), parameters.data() + parameters.size(), [](T w) { return std::isfinite(w); });
}

/// Throws Diverged. `what` describes the event, and `saved` the weights already saved.
[[noreturn]] inline void fail_diverged(const std::string& what, const RunProgress& progress, const std::string& saved,
                                       const OptimConfig& optim) {
  const std::string skipped = progress.skipped > 0
                                  ? fmt::format("; {} of {} steps of the epoch were skipped (train.on_nonfinite)",
                                                progress.skipped, progress.batch)
                                  : "";
  const char* const warm_up = optim.schedule == "constant" ? ""
                              : optim.warmup_steps > 0     ? " or a longer optim.warmup_steps"
                                                           : " or a longer optim.warmup_epochs";
  throw Diverged(fmt::format("training diverged {}{}{}; start another run with a smaller optim.lr ({:.6g} here){}",
                             what, skipped, saved, optim.lr, warm_up));
}

}  // namespace heed
