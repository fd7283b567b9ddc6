#include "heed/train/trainer.h"

#include "src/train/runs/checkpoint.h"
#include "src/train/runs/initial_weights.h"
#include "heed/analysis/cost_json.h"
#include "heed/io/file.h"
#include "heed/io/weights.h"
#include "heed/nn/families.h"
#include "heed/train/runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <span>

namespace heed {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Everything a run works with. Made in the order of its members, all of it before the first file is written.
template <class T>
class Run {
 public:
  Run(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
      Task<T>& task);
  Outcome operator()();
  Outcome check();

 private:
  void begin();
  void open_directory();
  void check_best() const;
  void check_same_everywhere() const;
  TrainPlan plan() const;
  Outcome run();
  bool train_epoch();
  void make_step(const TaskBatch<T>& batch);
  void keep_buffers();
  void skip_step();
  bool finish_epoch();
  bool test();
  void save_last();
  void save_best();
  void check_finite(const Parameters<T>& parameters) const;
  void record(const MetricsRow& row) {
    if (metrics_) metrics_->write(row);
  }
  bool interrupted() const { return ranks_.any(options_.interrupt && *options_.interrupt); }
  bool out_of_patience() const { return x_.train.patience > 0 && progress_.since_best >= x_.train.patience; }
  bool at_step_limit() const { return x_.train.max_steps > 0 && progress_.step >= x_.train.max_steps; }
  RunState<T> state() { return {parameters_, optimizer_, average_, task_, progress_, configuration_}; }
  template <class F>
  void for_buffers(const F& f) {
    for (Parameters<T>* const p : {&parameters_, task_.teacher()})
      if (p) f(std::span(p->data() + p->gradient_size(), p->data() + p->size()));
  }
  Parameters<T>& judged() { return average_ ? *average_ : state().kept(); }
  Evaluation judge(Parameters<T>& parameters, BatchSource<T>& source) const;
  StepReport report() const;
  [[noreturn]] void fail_diverged(const std::string& what) const;
  Rates rates_at(Index step) const {
    const Index per_epoch = train_->batches();
    // A step from before the resumption had the rate of a run of so many epochs as it was then to have.
    const Index epochs = step < first_step_ ? epochs_before_ : x_.train.epochs;
    return rates_of(x_.optim, step, per_epoch, epochs * per_epoch);
  }
  double lr_of(Index step) const { return rates_at(step).lr; }

  const Experiment& x_;
  const std::string configuration_;
  const TrainOptions& options_;
  Ranks& ranks_;
  TrainObserver silent_;
  TrainObserver& observer_;
  RunPaths paths_;
  const Model& model_;
  Task<T>& task_;
  ModelCost cost_;
  std::unique_ptr<BatchSource<T>> train_, validation_, test_;
  Parameters<T> parameters_;
  Optimizer<T> optimizer_;
  std::optional<Parameters<T>> average_;
  BatchGradient<T> gradient_;
  RunProgress progress_;
  std::optional<DirectoryLock> lock_;
  std::optional<MetricsFile> metrics_;  ///< of the process that writes
  std::vector<T> buffers_;              ///< before the step, where it may be left out
  Index saved_step_ = 0;                ///< of the last checkpoint
  std::optional<InitialWeights> initial_;
  bool is_new_ = false;      ///< this process has begun the run in its directory
  Index epochs_before_ = 0;  ///< of the run that is resumed
  Index first_step_ = 0;     ///< that is made here
  Clock::time_point epoch_start_;
  Index epoch_start_batch_ = 0;
};

void require_startable(const RunPaths& paths, const TrainOptions& options) {
  require(options.resume || !paths.exists(), "{}: holds a run already; --resume continues it, --run DIR begins another",
          paths.directory);
  require(!options.resume || paths.exists(), "{}: holds no run to resume", paths.directory);
}

CostQuery step_cost(const Experiment& x) {
  return {Convention::contractions, CostPass::step, CostGroup::layer, x.train.batch};
}

template <class T>
Run<T>::Run(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
            Task<T>& task)
    : x_(experiment),
      configuration_(hash_to_resume(experiment)),
      options_(options),
      ranks_(*options.ranks),
      observer_(ranks_.writes() ? observer : silent_),
      paths_(options.run),
      model_(model),
      task_(task),
      cost_(cost_of(model)),
      train_(task.open(Part::train, true)),
      validation_(task.open(Part::validation, false)),
      test_(task.open(Part::test, false)),
      parameters_(model.parameters()),
      optimizer_(x_.optim, parameters_),
      gradient_(model, parameters_, x_.train.batch, x_.train, ranks_) {
  check_same_everywhere();
  train_->make_only(gradient_.share());
  parameters_.initialise(static_cast<std::uint64_t>(x_.train.seed));
  if (!options_.init.empty()) {
    if (ranks_.writes()) initial_ = take_initial_weights(options_.init, x_, parameters_);
    share_weights(ranks_, parameters_);
  }
  if (x_.train.ema > 0) average_.emplace(parameters_);
  task_.begin(parameters_);
}

/// Each process has read the experiment and the data from its own disk.
template <class T>
void Run<T>::check_same_everywhere() const {
  const std::string here = fmt::format("{:016x} of the experiment, {} examples to train on, {} to validate, {} to test",
                                       std::hash<std::string>{}(config_toml(x_)), train_->examples(),
                                       validation_ ? validation_->examples() : 0, test_->examples());
  const std::vector<std::string> all = ranks_.texts(here);
  for (std::size_t i = 1; i < all.size(); ++i)
    require(all[i] == all[0], "train: process 0 has checksum {}; process {} has {}", all[0], i, all[i]);
}

template <class T>
void Run<T>::begin() {
  if (ranks_.writes()) open_directory();
  if (options_.resume) share_state(ranks_, state());
  saved_step_ = first_step_ = progress_.step;
  // From here on the directory can be resumed, whatever happens, and it is known that there is room for checkpoints.
  if (!options_.resume) save_last();
  observer_.begin(plan());
}

template <class T>
void Run<T>::open_directory() {
  if (!options_.resume) {
    std::error_code error;
    std::filesystem::create_directories(paths_.directory, error);
    require(!error, "{}: cannot be made: {}", paths_.directory, error.message());
  }
  lock_.emplace(paths_.directory);
  require_startable(paths_, options_);
  if (options_.resume) {
    check_same_version(paths_);
    const Experiment before = check_same_experiment(paths_, x_);
    epochs_before_ = before.train.epochs;
    load_checkpoint(paths_.last(), state());
    require(progress_.epoch + (progress_.batch > 0) <= x_.train.epochs,
            "{}: train.epochs = {}, but {} epochs are completed{}", paths_.directory, x_.train.epochs, progress_.epoch,
            progress_.batch > 0 ? ", and one more is begun" : "");
    check_progress(paths_.last(), progress_, x_.train.epochs, train_->batches());
    if (progress_.epoch > 0) check_best();
    metrics_.emplace(paths_,
                     MetricsSoFar{progress_.epoch, progress_.step, before.train.log_steps, validation_ != nullptr});
  }
  is_new_ = !options_.resume;
  paths_.remove_leftovers();
  write_file(paths_.environment(), environment_json());
  if (const std::string plugins = plugins_json(x_); !plugins.empty()) write_file(paths_.plugins(), plugins);
  write_file(paths_.cost(), cost_file(cost_, step_cost(x_), default_energy_table()));
  if (initial_) write_file(paths_.init(), init_json(*initial_, x_.train));
  // The last of them: what a resumed run is asked to change holds once nothing else can refuse it.
  write_file(paths_.config(), config_toml(x_));
  if (is_new_) metrics_.emplace(paths_);
}

/// The test at the end takes the best weights, of whichever epoch: better to know now that they cannot be read.
template <class T>
void Run<T>::check_best() const {
  try {
    Parameters<T> best(parameters_);
    load_weights(SafetensorsFile(paths_.best()), best);
  } catch (const Error& error) {
    fail(
        "{}; without the best weights so far the run cannot be resumed; another can begin with its last ones: --init "
        "{}",
        error.what(), paths_.last());
  }
}

template <class T>
TrainPlan Run<T>::plan() const {
  TrainPlan plan;
  plan.parameters = parameters_.list().trainable_elements();
  plan.example = cost_.example;
  plan.train_examples = train_->examples();
  plan.validation_examples = validation_ ? validation_->examples() : 0;
  plan.test_examples = test_->examples();
  plan.steps_per_epoch = train_->batches();
  plan.epoch = progress_.epoch;
  plan.step = progress_.step;
  plan.run = paths_.directory;
  plan.epochs_before = epochs_before_;
  if (initial_) plan.init = initial_->file, plan.taken = initial_->taken;
  const Counts counts = cost_total(cost_, step_cost(x_)).counts;
  plan.operations = counts.mul + counts.add;
  plan.energy_pj = energy_pj(default_energy_table(), counts);
  return plan;
}

template <class T>
Outcome Run<T>::operator()() {
  try {
    begin();
    if (options_.profile) gradient_.start_profile();
    const Outcome outcome = run();
    if (options_.profile) *options_.profile = gradient_.profile();
    return outcome;
  } catch (const Error&) {
    // What cannot take its first step leaves nothing behind: the same command, once mended, begins again.
    if (is_new_ && progress_.step == 0) paths_.remove();
    throw;
  }
}

template <class T>
Outcome Run<T>::check() {
  observer_.begin(plan());
  for (BatchSource<T>* const part : {validation_.get(), test_.get()})
    if (part) part->start(0), part->next();
  train_->start(0);
  const TaskBatch<T>& batch = *train_->next();
  epoch_start_ = Clock::now();
  make_step(batch);
  check_finite(parameters_);
  observer_.step(report());
  return Outcome::checked;
}

template <class T>
Outcome Run<T>::run() {
  const auto at_end = [&] { return progress_.epoch == x_.train.epochs || out_of_patience(); };
  while (!at_end()) {
    const bool completed = train_epoch() && finish_epoch();
    save_last();
    if (interrupted()) return Outcome::interrupted;
    if (!completed || (at_step_limit() && !at_end())) return Outcome::stopped;
  }
  if (progress_.epoch < x_.train.epochs) observer_.out_of_patience(progress_.epoch);
  return test() ? Outcome::finished : Outcome::interrupted;
}

/// Goes on with the current epoch; false if it was left before its end.
template <class T>
bool Run<T>::train_epoch() {
  train_->start(progress_.epoch, progress_.batch);
  epoch_start_ = Clock::now();
  epoch_start_batch_ = progress_.batch;
  while (progress_.batch < train_->batches()) {
    if (at_step_limit() || interrupted()) return false;
    make_step(*train_->next());
    if (progress_.batch > progress_.skipped) observer_.step(report());
    const bool last = progress_.batch == train_->batches();
    if (!last && x_.train.checkpoint_steps > 0 && progress_.step % x_.train.checkpoint_steps == 0) save_last();
  }
  return true;
}

template <class T>
void Run<T>::make_step(const TaskBatch<T>& batch) {
  const RandomStream random = RandomStream(static_cast<std::uint64_t>(x_.train.seed))
                                  .derive("step")
                                  .derive(static_cast<std::uint64_t>(progress_.step));
  if (x_.train.on_nonfinite == "skip") keep_buffers();
  const StepPlace place{progress_.step, x_.train.epochs * train_->batches(), progress_.epoch};
  const UpdateRules rules = task_.update_rules(place);
  batch.before_step(place);
  const BatchResult result = gradient_.run(batch, random);
  const Clipping clipping = clip(gradient_.gradients(), x_.optim.clip, rules.clip_each);
  if (!std::isfinite(result.loss) || !std::isfinite(clipping.norm)) {
    if (x_.train.on_nonfinite == "skip") return skip_step();
    fail_diverged(fmt::format("at step {} of epoch {}: loss {}, gradient norm {}; first not finite: {}",
                              progress_.step + 1, progress_.epoch + 1, result.loss, clipping.norm,
                              gradient_.first_non_finite()));
  }
  optimizer_.step(parameters_, gradient_.gradients(), rates_at(progress_.step), clipping.factor, rules.frozen);
  if (average_) {
    // What is not trained is taken as it is: places of landmarks, say, have no mean.
    const T keep(x_.train.ema), share(1 - x_.train.ema);
    const Index trained = parameters_.trainable_size();
    for (Index i = 0; i < trained; ++i)
      average_->data()[i] = keep * average_->data()[i] + share * parameters_.data()[i];
    std::copy(parameters_.data() + trained, parameters_.data() + parameters_.size(), average_->data() + trained);
  }
  task_.after_step(parameters_, place);
  ++progress_.step;
  ++progress_.batch;
  progress_.loss += result.loss;
  progress_.correct += result.correct;
  progress_.terms += result.terms;
  progress_.gradient_norm += clipping.norm;
  if (x_.train.log_steps)
    record({"step", progress_.epoch + 1, progress_.step, result.loss, result.correct / result.terms,
            lr_of(progress_.step - 1), report().images_per_s, clipping.norm});
}

/// Of the model that is trained, and of its teacher, which answers before a step.
template <class T>
void Run<T>::keep_buffers() {
  buffers_.clear();
  for_buffers([&](std::span<T> buffers) { buffers_.insert(buffers_.end(), buffers.begin(), buffers.end()); });
}

/// The step changes nothing; a logged row has no loss.
template <class T>
void Run<T>::skip_step() {
  auto before = buffers_.begin();
  for_buffers([&](std::span<T> buffers) {
    std::copy_n(before, buffers.size(), buffers.begin());
    before += static_cast<std::ptrdiff_t>(buffers.size());
  });
  ++progress_.step;
  ++progress_.batch;
  ++progress_.skipped;
  if (x_.train.log_steps) record({"step", progress_.epoch + 1, progress_.step, -1, -1, lr_of(progress_.step - 1)});
  if (progress_.skipped == train_->batches())
    fail_diverged(fmt::format("in epoch {}, no step of which had a finite loss and gradient", progress_.epoch + 1));
}

/// `what` says where and how. Throws Diverged with what is left, and with what may help.
template <class T>
void Run<T>::fail_diverged(const std::string& what) const {
  const std::string skipped = progress_.skipped > 0
                                  ? fmt::format("; {} of {} steps of the epoch were left out (train.on_nonfinite)",
                                                progress_.skipped, progress_.batch)
                                  : "";
  const std::string saved =
      options_.check ? "" : fmt::format("; {} has the weights after step {}", paths_.last(), saved_step_);
  throw Diverged(fmt::format(
      "training diverged {}{}{}; a smaller optim.lr ({:.6g} here) or a longer optim.warmup_epochs may help, in another "
      "run",
      what, skipped, saved, lr_of(progress_.step)));
}

template <class T>
StepReport Run<T>::report() const {
  const double here = static_cast<double>((progress_.batch - epoch_start_batch_) * x_.train.batch);
  return {progress_.epoch + 1,
          progress_.batch,
          progress_.step,
          progress_.loss / static_cast<double>(progress_.batch - progress_.skipped),
          progress_.correct / progress_.terms,
          lr_of(progress_.step - 1),
          here > 0 ? here / std::max(seconds_since(epoch_start_), 1e-9) : -1};
}

/// Validates, records and begins the next epoch; false if interrupted before that was done.
template <class T>
bool Run<T>::finish_epoch() {
  EpochReport epoch;
  epoch.train = report();
  epoch.seconds = seconds_since(epoch_start_);
  epoch.skipped = progress_.skipped;
  if (validation_) {
    const Score validation = judge(judged(), *validation_).score;
    if (interrupted()) return false;
    epoch.validated = true;
    epoch.validation_loss = validation.mean_loss();
    epoch.validation_accuracy = validation.accuracy();
  }
  record({"train", progress_.epoch + 1, progress_.step, epoch.train.loss, epoch.train.accuracy, epoch.train.lr,
          epoch.train.images_per_s,
          progress_.gradient_norm / static_cast<double>(progress_.batch - progress_.skipped)});
  if (epoch.validated)
    record({"valid", progress_.epoch + 1, progress_.step, epoch.validation_loss, epoch.validation_accuracy});
  ++progress_.since_best;
  if (!epoch.validated || epoch.validation_accuracy > progress_.best) {
    progress_.since_best = 0;
    if (epoch.validated) progress_.best = epoch.validation_accuracy;
    save_best();
  }
  epoch.remark = task_.end_epoch();
  ++progress_.epoch;
  progress_.batch = progress_.skipped = 0;
  progress_.loss = progress_.gradient_norm = 0;
  progress_.correct = progress_.terms = 0;
  observer_.epoch(epoch);
  return true;
}

/// Looks at the test set; false if interrupted before that was done.
template <class T>
bool Run<T>::test() {
  Parameters<T>& best = state().kept();
  if (ranks_.writes()) load_weights(SafetensorsFile(paths_.best()), best);
  share_weights(ranks_, best);
  const Evaluation result = judge(best, *test_);
  if (interrupted()) return false;
  record({"test", progress_.epoch, progress_.step, result.score.mean_loss(), result.score.accuracy()});
  if (metrics_) metrics_->sync();
  observer_.test(result);
  return true;
}

template <class T>
Evaluation Run<T>::judge(Parameters<T>& parameters, BatchSource<T>& source) const {
  try {
    Evaluation result = evaluate<T>(model_, parameters, source, task_.counts(), x_.train.piece,
                                    {.interrupt = options_.interrupt, .ranks = &ranks_});
    task_.conclude(result);
    return result;
  } catch (const Diverged& error) {
    fail_diverged(fmt::format("by step {}: {}", progress_.step, error.what()));
  }
}

/// What is not finite is never kept: the files of before stay.
template <class T>
void Run<T>::check_finite(const Parameters<T>& parameters) const {
  if (!std::all_of(parameters.data(), parameters.data() + parameters.size(), [](T w) { return std::isfinite(w); }))
    fail_diverged(fmt::format("by step {}: the weights are not finite", progress_.step));
}

template <class T>
void Run<T>::save_last() {
  check_finite(parameters_);
  if (ranks_.writes()) {
    metrics_->sync();  // the checkpoint counts on its rows
    save_checkpoint(paths_.last(), state());
  }
  saved_step_ = progress_.step;
}

template <class T>
void Run<T>::save_best() {
  check_finite(judged());
  if (!ranks_.writes()) return;
  SafetensorsWriter file;
  add_weights(file, judged());
  add_version(file);
  file.write(paths_.best());
}

}  // namespace

template <class T>
Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
              Task<T>& task) {
  require(options.check || !options.run.empty(), "the run directory's name is empty");
  if (!options.run.empty() && options.ranks->writes()) require_startable(RunPaths(options.run), options);
  require(!options.resume || options.init.empty(), "--init {}: a resumed run goes on from its own weights",
          options.init);
  if (!options.check) return Run<T>(experiment, options, observer, model, task)();
  Experiment checked = experiment;
  checked.train.log_steps = false;
  checked.train.on_nonfinite = "stop";
  return Run<T>(checked, options, observer, model, task).check();
}

template Outcome train(const Experiment&, const TrainOptions&, TrainObserver&, const Model&, Task<float>&);
template Outcome train(const Experiment&, const TrainOptions&, TrainObserver&, const Model&, Task<double>&);

Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer) {
  validate(experiment);
  const std::unique_ptr<Model> model = make_model(experiment);
  if (experiment.train.dtype == "f64")
    return train(experiment, options, observer, *model, *make_task<double>(experiment, *model));
  return train(experiment, options, observer, *model, *make_task<float>(experiment, *model));
}

}  // namespace heed
