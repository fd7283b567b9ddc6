// What a training run is made of at one moment, and its file.
#pragma once

#include "heed/base/parameters.h"
#include "heed/train/optimizer.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tasks/task.h"

#include <optional>
#include <string>

namespace heed {

/// Where a run stands. The order of the data, augmentation and dropout are functions of the seed and these
/// numbers, so no other random state exists.
struct RunProgress {
  Index epoch = 0;                ///< epochs completed
  Index step = 0;                 ///< updates made
  Index batch = 0;                ///< batches of the current epoch done
  Index skipped = 0;              ///< those among them that were left out (train.on_nonfinite)
  double loss = 0;                ///< sum over the others of their mean loss
  double correct = 0, terms = 0;  ///< right answers in those batches, and terms to answer
  double gradient_norm = 0;       ///< sum over those batches of the norms of their gradients
  double best = -1;               ///< best validation accuracy so far; -1: none yet
  Index since_best = 0;           ///< epochs completed after the one that had it
};

/// Weights, optimiser, task and progress of a run.
template <class T>
struct RunState {
  Parameters<T>& parameters;
  Optimizer<T>& optimizer;
  std::optional<Parameters<T>>& average;  ///< exponential moving average of the weights, where asked for
  Task<T>& task;
  RunProgress& progress;
  const std::string& configuration;  ///< hash_to_resume() of the experiment

  /// The weights that stand under the model's names.
  Parameters<T>& kept() const { return task.teacher() ? *task.teacher() : parameters; }
};

/// Writes last.safetensors: the model's tensors under their names, everything else under the prefix `heed.`.
/// The same state gives the same bytes.
template <class T>
void save_checkpoint(const std::string& path, const RunState<T>& state);

/// Reads it back, into a state of the same model and optimiser. Throws Error if it is not of their kind.
template <class T>
void load_checkpoint(const std::string& path, const RunState<T>& state);

/// Gives all processes the state of process 0.
template <class T>
void share_state(Ranks& ranks, const RunState<T>& state);

/// The same of weights alone.
template <class T>
void share_weights(Ranks& ranks, Parameters<T>& parameters) {
  ranks.share(std::as_writable_bytes(std::span(parameters.data(), static_cast<std::size_t>(parameters.size()))));
}

/// Throws Error unless a run of so many epochs of so many batches can stand there.
void check_progress(const std::string& path, const RunProgress& progress, Index epochs, Index batches);

}  // namespace heed
