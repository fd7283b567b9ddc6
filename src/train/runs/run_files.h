// Files of a run during its training.
#pragma once

#include "checkpoint.h"
#include "initial_weights.h"
#include "heed/analysis/cost_json.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/io/file.h"
#include "heed/io/weights.h"
#include "heed/train/runs/data_record.h"
#include "heed/train/runs/run.h"
#include "heed/train/trainer.h"

#include <fmt/format.h>

#include <filesystem>
#include <optional>
#include <string>

namespace heed {

/// Throws Error if the run directory holds a run that is not to be resumed, or lacks a run to resume.
inline void require_startable(const RunPaths& paths, const TrainOptions& options) {
  require(options.resume || !paths.exists(),
          "{}: already contains a run; continue it with --resume, or start another with --run DIR", paths.directory);
  require(!options.resume || paths.exists(), "{}: contains no run to resume", paths.directory);
}

/// Returns the query for a training step's cost, for cost.json and TrainPlan.
inline CostQuery step_cost(const Experiment& x) {
  return {Convention::contractions, CostPass::step, CostGroup::layer, x.train.batch};
}

/// The directory of a run: opens, locks and resumes it, and writes checkpoints and metrics. All processes make the same
/// calls; process 0 reads and writes.
template <class T>
class RunFiles {
 public:
  RunFiles(const Experiment& experiment, const TrainOptions& options, RunState<T>& state)
      : x_(experiment), options_(options), state_(state), ranks_(*options.ranks), paths_(options.run) {}

  /// Loads the weights of --init, if given.
  void take_initial_weights() {
    if (options_.init.empty()) return;
    if (ranks_.writes()) {
      initial_ = heed::take_initial_weights(options_.init, x_, state_.parameters);
      warn_of_other_classes(*initial_, state_.task.class_names());
    }
    share_weights(ranks_, state_.parameters);
  }

  /// Reads and describes the data of a new run. Warns about copied test files.
  void describe_new_data() {
    if (!ranks_.writes()) return;
    const DataFacts facts = state_.task.data_facts();
    own_validation_ = !facts.sets_aside;
    data_ = describe_data(x_.data, facts);
    warn_of_copied_tests(nullptr);
  }

  /// Creates the directory, or resumes the run in it: restores the state and drops the metrics rows written after the
  /// checkpoint.
  void open(const ModelCost& cost, Index batches, bool validated) {
    if (ranks_.writes()) {
      if (!options_.resume) make_directory(paths_.directory);
      lock_.emplace(paths_.directory);
      require_startable(paths_, options_);
      is_new_ = !options_.resume;
      MetricsSoFar so_far;
      if (options_.resume) so_far = resume(batches, validated);
      paths_.remove_leftovers();
      if (is_new_) describe_new_data();
      AtomicFiles files = descriptions(cost);
      // No file of the run has changed up to here: a rejected resumption leaves the run as it was.
      if (is_new_)
        metrics_.emplace(paths_);
      else
        metrics_.emplace(paths_, so_far);
      files.commit();
    }
    if (options_.resume) {
      share_state(ranks_, state_);
      ranks_.share(std::as_writable_bytes(std::span(&recounted_, 1)));
    }
    saved_step_ = first_step_ = state_.progress.step;
  }

  /// Removes the files of a new run without a completed step, so that the same command can start it again.
  void discard_untrained() {
    if (is_new_ && state_.progress.step == 0) paths_.remove();
  }

  void record(const MetricsRow& row) {
    if (metrics_) metrics_->write(row);
  }

  void save_last() {
    if (ranks_.writes()) {
      metrics_->sync();  // a checkpoint requires the rows of its steps
      save_checkpoint(paths_.last(), state_);
    }
    saved_step_ = state_.progress.step;
  }
  void save_best(const Parameters<T>& parameters) {
    if (!ranks_.writes()) return;
    SafetensorsWriter file;
    add_weights(file, parameters);
    add_version(file);
    file.write(paths_.best());
  }
  void load_best(Parameters<T>& parameters) {
    if (ranks_.writes()) load_weights(SafetensorsFile(paths_.best()), parameters);
    share_weights(ranks_, parameters);
  }

  /// Flushes the metrics to the disk.
  void sync() {
    if (metrics_) metrics_->sync();
  }

  /// Returns the weights of --init; empty without it, and in processes other than 0.
  const std::optional<InitialWeights>& initial() const { return initial_; }

  /// Returns true if the validation examples of a new run are not training examples set aside; false in processes other
  /// than 0.
  bool own_validation() const { return own_validation_; }

  /// Returns the planned number of epochs of the resumed run; 0 for a new run.
  Index epochs_before() const { return epochs_before_; }

  /// Returns the number of steps completed before this process continued the run.
  Index first_step() const { return first_step_; }

  /// Returns the number of completed steps minus the number of steps that the completed epochs and batches have with
  /// the current data, whose epochs may have fewer batches; 0 unless the data have changed.
  Index recounted() const { return recounted_; }

  /// Returns a note on the saved weights for an error message: "; PATH has the weights after step N".
  std::string saved_note() const {
    return options_.check ? "" : fmt::format("; {} has the weights after step {}", paths_.last(), saved_step_);
  }

 private:
  MetricsSoFar resume(Index batches, bool validated) {
    const RunProgress& progress = state_.progress;
    check_same_version(paths_);
    const Experiment before = check_same_experiment(paths_, x_);
    epochs_before_ = before.train.epochs;
    load_checkpoint(paths_.last(), state_);
    require(progress.epoch + (progress.batch > 0) <= x_.train.epochs,
            "{}: train.epochs = {}, but the run has completed {}{}", paths_.directory, x_.train.epochs,
            counted(progress.epoch, "epoch"), progress.batch > 0 ? " and started another" : "");
    // Changed data may change the number of batches per epoch, and the current epoch may already have had more.
    const bool changed = require_same_data() || options_.changed_data;
    const Index most = changed ? std::max(batches, progress.batch) : batches;
    if (changed) recounted_ = progress.step - progress.epoch * batches - std::min(batches, progress.batch);
    check_progress(paths_.last(), progress, x_.train.epochs, most,
                   changed ? progress.step - progress.epoch * most - progress.batch : 0);
    if (progress.epoch > 0) check_best();
    return {progress.epoch, progress.step, validated && !changed};
  }
  /// Returns true if the data have changed since the run was started, before this or an earlier resumption.
  bool require_same_data() {
    const std::optional<DataRecord> began = read_data_record(paths_);
    if (!began) return false;
    const DataFacts facts = state_.task.data_facts();
    DataRecord now = describe_data(x_.data, facts);
    const std::string changes = data_changes(*began, now);
    if (changes.empty()) {
      if (now.path != began->path) (data_ = *began)->path = now.path;
      return !began->changes.empty();
    }
    std::string what = fmt::format("{}: the data files have changed since the run was started: {}", now.path, changes);
    if (const Index count = former_held_out(*began, now); count > 0)
      what += fmt::format("; {} of its validation and test files are now training files", count);
    require(options_.changed_data, "{}; to resume it with the changed data, add --changed-data", what);
    const bool anew = facts.sets_aside && x_.data.validation > 0 && began->recorded.validation.empty();
    // A text is one file, whose length determines the offsets of its parts.
    const auto content = [](const DataRecord& record) {
      return record.recorded.files.empty() ? "" : record.recorded.files.begin()->second;
    };
    const bool divided = x_.data.name == "text" && content(now) != content(*began);
    warn(what + (anew      ? "; the validation examples are redrawn"
                 : divided ? "; the text is divided into training, validation and test bytes again, so the run may "
                             "have been trained on some of the validation and test bytes"
                           : ""));
    now.changes = began->changes;
    now.changes.push_back(fmt::format("after {}: {}", counted(state_.progress.step, "step"), changes));
    data_ = std::move(now);
    warn_of_copied_tests(&*began);
    return true;
  }
  void warn_of_copied_tests(const DataRecord* before) const {
    if (const std::string copies = copied_test_files(*data_, before); !copies.empty())
      warn(fmt::format("{}: {}", data_->path, copies));
  }
  void check_best() const {
    try {
      Parameters<T> best(state_.parameters);
      load_weights(SafetensorsFile(paths_.best()), best);
    } catch (const Error& error) {
      fail("{}; without the best weights the run cannot be resumed; start another run from its last weights: --init {}",
           error.what(), paths_.last());
    }
  }
  /// Prepares the files that describe the run; commit() replaces the existing ones.
  AtomicFiles descriptions(const ModelCost& cost) {
    AtomicFiles files;
    if (data_) files.write(paths_.data(), data_json(*data_));
    files.write(paths_.environment(), environment_json());
    if (const std::string plugins = plugins_json(paths_, x_); !plugins.empty()) files.write(paths_.plugins(), plugins);
    copy_plugins(files, paths_, x_);
    files.write(paths_.cost(), cost_file(cost, step_cost(x_), default_energy_table()));
    if (initial_) files.write(paths_.init(), init_json(*initial_, x_.train));
    Experiment placed = x_;  // with an absolute path of the data, since the run may be used from another directory
    if (!placed.data.path.empty()) placed.data.path = std::filesystem::absolute(placed.data.path).lexically_normal();
    // config.toml is replaced last: settings changed by a resumed run become permanent only when nothing else can fail.
    files.write(paths_.config(), config_toml(placed));
    return files;
  }

  const Experiment& x_;
  const TrainOptions& options_;
  RunState<T>& state_;
  Ranks& ranks_;
  RunPaths paths_;
  std::optional<DirectoryLock> lock_;
  std::optional<MetricsFile> metrics_;  ///< in process 0
  std::optional<InitialWeights> initial_;
  std::optional<DataRecord> data_;  ///< record to write: of a new run, or of one resumed with changed data
  bool is_new_ = false;             ///< this process created the run
  bool own_validation_ = false;     ///< in a new run: the data have separate validation examples
  Index epochs_before_ = 0, first_step_ = 0;
  Index recounted_ = 0;
  Index saved_step_ = 0;  ///< step of the last checkpoint
};

}  // namespace heed
