// State of a training run and its file.
#pragma once

#include "heed/base/parameters.h"
#include "heed/train/optimizer.h"
#include "heed/train/processes/ranks.h"
#include "heed/train/tasks/task.h"

#include <optional>
#include <string>

namespace heed {

/// Progress of a run. Data order, augmentation and dropout are functions of the seed and these numbers; there is no
/// other random state.
struct RunProgress {
  Index epoch = 0;                ///< completed epochs
  Index step = 0;                 ///< steps, including skipped ones
  Index batch = 0;                ///< completed batches of the current epoch, including skipped ones
  Index skipped = 0;              ///< skipped batches of the current epoch (train.on_nonfinite)
  double loss = 0;                ///< sum of the mean losses of the batches not skipped
  double correct = 0, terms = 0;  ///< numbers of correct terms, and of all terms, in the batches not skipped
  double gradient_norm = 0;       ///< sum of the gradient norms of the batches not skipped
  double best = -1;               ///< best validation accuracy; -1: none
  Index since_best = 0;           ///< epochs completed after the best one

  double mean_loss() const { return loss / static_cast<double>(batch - skipped); }
  double accuracy() const { return correct / terms; }
  double mean_gradient_norm() const { return gradient_norm / static_cast<double>(batch - skipped); }

  void begin_step() { ++step, ++batch; }
  void begin_epoch() {
    ++epoch;
    batch = skipped = 0;
    loss = correct = terms = gradient_norm = 0;
  }
};

/// Weights, optimiser, task and progress of a run.
template <class T>
struct RunState {
  RunState(const Experiment& experiment, const Model& model, Task<T>& task);

  Parameters<T> parameters;  ///< the trained weights
  Optimizer<T> optimizer;
  std::optional<Parameters<T>> average;  ///< exponential moving average of the weights (train.ema)
  Task<T>& task;
  RunProgress progress;
  std::string configuration;  ///< hash_to_resume() of the experiment

  /// Returns the weights saved under the model's names: the teacher's, if there is one.
  Parameters<T>& model_weights() { return task.teacher() ? *task.teacher() : parameters; }

  /// Returns the weights that are validated and tested.
  Parameters<T>& evaluated_weights() { return average ? *average : model_weights(); }
};

/// Writes last.safetensors: the model's tensors under their names, everything else under the prefix `heed.`. The same
/// state gives the same bytes.
template <class T>
void save_checkpoint(const std::string& path, RunState<T>& state);

/// Reads a checkpoint into a state of the same model and optimiser. Throws Error if the checkpoint does not fit.
template <class T>
void load_checkpoint(const std::string& path, RunState<T>& state);

/// Copies the state of process 0 to all processes.
template <class T>
void share_state(Ranks& ranks, RunState<T>& state);

/// Copies the weights of process 0 to all processes.
template <class T>
void share_weights(Ranks& ranks, Parameters<T>& parameters) {
  ranks.share(std::as_writable_bytes(std::span(parameters.data(), static_cast<std::size_t>(parameters.size()))));
}

/// Throws Error if the progress is impossible in a run of `epochs` epochs of `batches` batches, with `more` steps
/// beyond those of its completed epochs and batches.
void check_progress(const std::string& path, const RunProgress& progress, Index epochs, Index batches, Index more = 0);

}  // namespace heed
