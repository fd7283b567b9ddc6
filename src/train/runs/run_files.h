// The files of a training run while it trains.
#pragma once

#include "checkpoint.h"
#include "initial_weights.h"
#include "heed/analysis/cost_json.h"
#include "heed/io/file.h"
#include "heed/train/runs/run.h"
#include "heed/train/trainer.h"

#include <optional>
#include <string>

namespace heed {

/// Throws Error if the run directory holds a run that is not to be resumed, or none that is.
void require_startable(const RunPaths& paths, const TrainOptions& options);

/// Returns the query for the cost of a training step, for cost.json and TrainPlan.
CostQuery step_cost(const Experiment& experiment);

/// Opens, locks and resumes the directory of a run, and writes its checkpoints and metrics. All processes make the same
/// calls; process 0 reads and writes.
template <class T>
class RunFiles {
 public:
  RunFiles(const Experiment& experiment, const TrainOptions& options, RunState<T>& state);

  /// Loads the weights of --init, if given.
  void take_initial_weights();

  /// Creates the directory, or resumes the run in it: restores the state and drops rows of metrics after its
  /// checkpoint.
  void open(const ModelCost& cost, Index batches, bool validated);

  /// Removes the files of a new run that has not completed a step: the same command can start it again.
  void discard_untrained();

  void record(const MetricsRow& row) {
    if (metrics_) metrics_->write(row);
  }
  void save_last();
  void save_best(const Parameters<T>& parameters);
  void load_best(Parameters<T>& parameters);

  /// Brings the recorded metrics to the disk.
  void sync();

  /// Returns the weights of --init; empty without, and in processes other than 0.
  const std::optional<InitialWeights>& initial() const { return initial_; }

  /// Returns the number of epochs the resumed run had; 0 for a new run.
  Index epochs_before() const { return epochs_before_; }

  /// Returns the number of steps before this process continued the run.
  Index first_step() const { return first_step_; }

  /// Returns where the weights are after a failure: "; PATH has the weights after step N".
  std::string saved_note() const;

 private:
  void create_directory() const;
  void resume(Index batches, bool validated);
  void check_best() const;
  void write_descriptions(const ModelCost& cost) const;

  const Experiment& x_;
  const TrainOptions& options_;
  RunState<T>& state_;
  Ranks& ranks_;
  RunPaths paths_;
  std::optional<DirectoryLock> lock_;
  std::optional<MetricsFile> metrics_;  ///< in process 0
  std::optional<InitialWeights> initial_;
  bool is_new_ = false;  ///< this process created the run
  Index epochs_before_ = 0, first_step_ = 0;
  Index saved_step_ = 0;  ///< step of the last checkpoint
};

}  // namespace heed
