#include "run_files.h"

#include "heed/io/weights.h"

#include <fmt/format.h>

#include <filesystem>

namespace heed {

void require_startable(const RunPaths& paths, const TrainOptions& options) {
  require(options.resume || !paths.exists(), "{}: holds a run already; --resume continues it, --run DIR begins another",
          paths.directory);
  require(!options.resume || paths.exists(), "{}: holds no run to resume", paths.directory);
}

CostQuery step_cost(const Experiment& x) {
  return {Convention::contractions, CostPass::step, CostGroup::layer, x.train.batch};
}

template <class T>
RunFiles<T>::RunFiles(const Experiment& experiment, const TrainOptions& options, RunState<T>& state)
    : x_(experiment), options_(options), state_(state), ranks_(*options.ranks), paths_(options.run) {}

template <class T>
void RunFiles<T>::take_initial_weights() {
  if (options_.init.empty()) return;
  if (ranks_.writes()) initial_ = heed::take_initial_weights(options_.init, x_, state_.parameters);
  share_weights(ranks_, state_.parameters);
}

template <class T>
void RunFiles<T>::open(const ModelCost& cost, Index batches, bool validated) {
  if (ranks_.writes()) {
    if (!options_.resume) create_directory();
    lock_.emplace(paths_.directory);
    require_startable(paths_, options_);
    if (options_.resume) resume(batches, validated);
    is_new_ = !options_.resume;
    paths_.remove_leftovers();
    write_descriptions(cost);
    if (is_new_) metrics_.emplace(paths_);
  }
  if (options_.resume) share_state(ranks_, state_);
  saved_step_ = first_step_ = state_.progress.step;
}

template <class T>
void RunFiles<T>::create_directory() const {
  std::error_code error;
  std::filesystem::create_directories(paths_.directory, error);
  require(!error, "{}: cannot be made: {}", paths_.directory, error.message());
}

template <class T>
void RunFiles<T>::resume(Index batches, bool validated) {
  const RunProgress& progress = state_.progress;
  check_same_version(paths_);
  const Experiment before = check_same_experiment(paths_, x_);
  epochs_before_ = before.train.epochs;
  load_checkpoint(paths_.last(), state_);
  require(progress.epoch + (progress.batch > 0) <= x_.train.epochs,
          "{}: train.epochs = {}, but {} epochs are completed{}", paths_.directory, x_.train.epochs, progress.epoch,
          progress.batch > 0 ? ", and one more is begun" : "");
  check_progress(paths_.last(), progress, x_.train.epochs, batches);
  if (progress.epoch > 0) check_best();
  metrics_.emplace(paths_, MetricsSoFar{progress.epoch, progress.step, before.train.log_steps, validated});
}

/// The final test needs the best weights: fails early if they are unreadable.
template <class T>
void RunFiles<T>::check_best() const {
  try {
    Parameters<T> best(state_.parameters);
    load_weights(SafetensorsFile(paths_.best()), best);
  } catch (const Error& error) {
    fail(
        "{}; without the best weights so far the run cannot be resumed; another can begin with its last ones: --init "
        "{}",
        error.what(), paths_.last());
  }
}

template <class T>
void RunFiles<T>::write_descriptions(const ModelCost& cost) const {
  write_file(paths_.environment(), environment_json());
  if (const std::string plugins = plugins_json(x_); !plugins.empty()) write_file(paths_.plugins(), plugins);
  write_file(paths_.cost(), cost_file(cost, step_cost(x_), default_energy_table()));
  if (initial_) write_file(paths_.init(), init_json(*initial_, x_.train));
  // Written last: the changes of a resumed run become permanent once nothing else can fail.
  write_file(paths_.config(), config_toml(x_));
}

template <class T>
void RunFiles<T>::discard_untrained() {
  if (is_new_ && state_.progress.step == 0) paths_.remove();
}

template <class T>
void RunFiles<T>::save_last() {
  if (ranks_.writes()) {
    metrics_->sync();  // a checkpoint requires the rows of its steps
    save_checkpoint(paths_.last(), state_);
  }
  saved_step_ = state_.progress.step;
}

template <class T>
void RunFiles<T>::save_best(const Parameters<T>& parameters) {
  if (!ranks_.writes()) return;
  SafetensorsWriter file;
  add_weights(file, parameters);
  add_version(file);
  file.write(paths_.best());
}

template <class T>
void RunFiles<T>::load_best(Parameters<T>& parameters) {
  if (ranks_.writes()) load_weights(SafetensorsFile(paths_.best()), parameters);
  share_weights(ranks_, parameters);
}

template <class T>
void RunFiles<T>::sync() {
  if (metrics_) metrics_->sync();
}

template <class T>
std::string RunFiles<T>::saved_note() const {
  return options_.check ? "" : fmt::format("; {} has the weights after step {}", paths_.last(), saved_step_);
}

template class RunFiles<float>;
template class RunFiles<double>;

}  // namespace heed
