// The training loop. Files of the run: src/train/runs/run_files.h. The gradient of a batch: src/train/step.cpp.
#include "heed/train/trainer.h"

#include "divergence.h"
#include "heed/nn/families.h"
#include "heed/train/step.h"
#include "src/train/runs/run_files.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>

namespace heed {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A training run. The constructor reads all input, before the first file is written.
template <class T>
class Run {
 public:
  Run(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
      Task<T>& task)
      : x_(experiment),
        options_(options),
        ranks_(*options.ranks),
        observer_(ranks_.writes() ? observer : silent_),
        model_(model),
        task_(task),
        cost_(cost_of(model)),
        train_(task.open(Part::train, true)),
        validation_(task.open(Part::validation, false)),
        test_(task.open(Part::test, false)),
        state_(experiment, model, task),
        files_(experiment, options, state_),
        gradient_(model, state_.parameters, x_.train.batch, x_.train, ranks_) {
    require(x_.train.patience == 0 || validation_,
            "[train] patience = {} needs validation examples; set [data] validation above 0", x_.train.patience);
    // Each process has read the experiment and the data from its own disk, so they may differ.
    ranks_.require_same(fmt::format("{:016x} of the experiment, {} examples to train on, {} to validate, {} to test",
                                    std::hash<std::string>{}(config_toml(x_)), train_->examples(),
                                    validation_ ? validation_->examples() : 0, test_->examples()));
    train_->make_only(gradient_.share());
    state_.parameters.initialise(x_.train.seed);
    files_.take_initial_weights();
    if (x_.train.ema > 0) state_.average.emplace(state_.parameters);
    task_.begin(state_.parameters);
  }

  /// Reads the data as a new run does, reads a batch of each part, runs the first step, and writes nothing.
  Outcome check() {
    files_.describe_new_data();
    observer_.begin(plan());
    for (BatchSource<T>* const part : {validation_.get(), test_.get()})
      if (part) part->start(0), part->next();
    train_->start(0);
    const TaskBatch<T>& batch = *train_->next();
    epoch_start_ = Clock::now();
    step(batch);
    require_finite_weights(state_.parameters);
    observer_.step(report());
    return Outcome::checked;
  }

  Outcome train() {
    try {
      files_.open(cost_, train_->batches(), validation_ != nullptr);
      // Makes a new run resumable, and checks that there is room for its checkpoints.
      if (!options_.resume) save_last();
      observer_.begin(plan());
      if (options_.profile) gradient_.start_profile();
      if constexpr (std::is_same_v<T, float>) gradient_.observe(options_.tensors);
      const Outcome outcome = train_epochs();
      if (options_.profile) *options_.profile = gradient_.profile();
      return outcome;
    } catch (const Error&) {
      files_.discard_untrained();
      throw;
    }
  }

 private:
  Outcome train_epochs() {
    while (!at_end()) {
      const bool completed = train_epoch() && finish_epoch();
      save_last();
      if (interrupted()) return Outcome::interrupted;
      if (!completed || (at_step_limit() && !at_end())) return Outcome::stopped;
    }
    if (progress_.epoch < x_.train.epochs) observer_.out_of_patience(progress_.epoch);
    return test() ? Outcome::finished : Outcome::interrupted;
  }

  /// Trains for the remaining batches of the current epoch. Returns false if stopped before its end.
  bool train_epoch() {
    train_->start(progress_.epoch, std::min(progress_.batch, train_->batches()));
    epoch_start_ = Clock::now();
    epoch_start_batch_ = progress_.batch;
    while (progress_.batch < train_->batches()) {
      if (at_step_limit() || interrupted()) return false;
      step(*train_->next());
      if (progress_.batch > progress_.skipped) observer_.step(report());
      const bool last = progress_.batch == train_->batches();
      if (!last && x_.train.checkpoint_steps > 0 && progress_.step % x_.train.checkpoint_steps == 0) save_last();
    }
    return true;
  }

  void step(const TaskBatch<T>& batch) {
    const RandomStream random = RandomStream(x_.train.seed).derive("step").derive(progress_.step);
    const StepPlace place{progress_.step - files_.recounted(), x_.train.epochs * train_->batches(), progress_.epoch};
    const UpdateRules rules = task_.update_rules(place);
    const bool may_skip = x_.train.on_nonfinite == "skip";
    if (may_skip) before_step_.save(state_);

    // Gradient.
    batch.before_step(place);
    const BatchResult result = gradient_.run(batch, random);
    const Clipping clipping = clip(gradient_.gradients(), x_.optim.clip, rules.clip_each);
    if (!std::isfinite(result.loss) || !std::isfinite(clipping.norm)) {
      if (may_skip) return skip_step();
      // The sign of a NaN differs between processors.
      const auto shown = [](double x) { return std::isnan(x) ? "nan" : fmt::format("{}", x); };
      diverged(fmt::format("at step {} of epoch {}: loss {}, gradient norm {}; first not finite: {}",
                           progress_.step + 1, progress_.epoch + 1, shown(result.loss), shown(clipping.norm),
                           gradient_.first_non_finite()));
    }

    // Update.
    state_.optimizer.step(state_.parameters, gradient_.gradients(), rates_at(progress_.step), clipping.factor,
                          rules.frozen);
    if (state_.average) update_average(*state_.average, state_.parameters, x_.train.ema);
    task_.after_step(state_.parameters, place);

    progress_.begin_step();
    progress_.loss += result.loss;
    progress_.correct += result.correct;
    progress_.terms += result.terms;
    progress_.gradient_norm += clipping.norm;
    if (x_.train.log_steps)
      files_.record({"step", progress_.epoch + 1, progress_.step, result.loss, result.correct / result.terms,
                     lr_of(progress_.step - 1), report().images_per_s, clipping.norm});
  }

  /// Counts the step as skipped and restores the buffers saved before it. The step's logged row has no loss.
  void skip_step() {
    before_step_.restore(state_);
    progress_.begin_step();
    ++progress_.skipped;
    if (x_.train.log_steps)
      files_.record({"step", progress_.epoch + 1, progress_.step, -1, -1, lr_of(progress_.step - 1)});
    if (progress_.skipped == train_->batches())
      diverged(fmt::format("in epoch {}: no step had a finite loss and gradient", progress_.epoch + 1));
  }

  /// Validates, records the results and starts the next epoch. Returns false if interrupted.
  bool finish_epoch() {
    EpochReport epoch;
    epoch.seconds = epoch_seconds();
    epoch.train = report(epoch.seconds);
    epoch.skipped = progress_.skipped;
    Parameters<T>& weights = state_.evaluated_weights();
    if (validation_) {
      const Score validation = evaluate(weights, *validation_).score;
      if (interrupted()) return false;
      epoch.validated = true;
      epoch.validation_loss = validation.mean_loss();
      epoch.validation_accuracy = validation.accuracy();
    }
    files_.record({"train", progress_.epoch + 1, progress_.step, epoch.train.loss, epoch.train.accuracy, epoch.train.lr,
                   epoch.train.images_per_s, progress_.mean_gradient_norm()});
    if (epoch.validated)
      files_.record({"valid", progress_.epoch + 1, progress_.step, epoch.validation_loss, epoch.validation_accuracy});
    ++progress_.since_best;
    if (!epoch.validated || epoch.validation_accuracy > progress_.best) {
      progress_.since_best = 0;
      if (epoch.validated) progress_.best = epoch.validation_accuracy;
      require_finite_weights(weights);
      files_.save_best(weights);
    }
    epoch.remark = task_.end_epoch();
    progress_.begin_epoch();
    observer_.epoch(epoch);
    return true;
  }

  /// Evaluates the best weights on the test set. Returns false if interrupted.
  bool test() {
    Parameters<T>& best = state_.model_weights();
    files_.load_best(best);
    const Evaluation result = evaluate(best, *test_);
    if (interrupted()) return false;
    files_.record({"test", progress_.epoch, progress_.step, result.score.mean_loss(), result.score.accuracy()});
    files_.sync();
    observer_.test(result);
    return true;
  }

  Evaluation evaluate(Parameters<T>& parameters, BatchSource<T>& source) {
    try {
      Evaluation result = heed::evaluate<T>(model_, parameters, source, task_.counts(), microbatch_of(x_.train),
                                            {.interrupt = options_.interrupt, .ranks = &ranks_});
      task_.conclude(result);
      return result;
    } catch (const Diverged& error) {
      diverged(fmt::format("by step {}: {}", progress_.step, error.what()));
    }
  }

  void save_last() {
    require_finite_weights(state_.parameters);
    files_.save_last();
  }

  TrainPlan plan() const {
    TrainPlan plan;
    plan.parameters = state_.parameters.list().trainable_elements();
    plan.example = cost_.example;
    plan.measure = task_.measure();
    plan.train_examples = train_->examples();
    plan.validation_examples = validation_ ? validation_->examples() : 0;
    plan.test_examples = test_->examples();
    plan.own_validation = files_.own_validation();
    plan.train_classes = train_->class_counts();
    plan.test_classes = test_->class_counts();
    if (validation_) plan.validation_classes = validation_->class_counts();
    if (!plan.train_classes.empty()) plan.class_names = task_.class_names();
    plan.steps_per_epoch = train_->batches();
    plan.epoch = progress_.epoch;
    plan.step = progress_.step;
    plan.run = options_.run;
    plan.epochs_before = files_.epochs_before();
    if (files_.initial()) plan.init = files_.initial()->file, plan.taken = files_.initial()->taken;
    const Counts counts = cost_total(cost_, step_cost(x_)).counts;
    plan.operations = counts.mul + counts.add;
    plan.energy_pj = energy_pj(default_energy_table(), counts);
    plan.shorter = train_->has_shorter();
    return plan;
  }

  /// Returns the seconds since the start of the epoch, or since the run was resumed if that was within the epoch.
  double epoch_seconds() const { return std::max(seconds_since(epoch_start_), 1e-9); }

  StepReport report() const { return report(epoch_seconds()); }
  StepReport report(double seconds) const {
    const double images = static_cast<double>((progress_.batch - epoch_start_batch_) * x_.train.batch);
    return {progress_.epoch + 1,
            progress_.batch,
            progress_.step,
            progress_.mean_loss(),
            progress_.accuracy(),
            lr_of(progress_.step - 1),
            images > 0 ? images / seconds : -1};
  }

  /// Returns the rates of a step. Steps before the resumption use the schedule for the number of epochs planned before
  /// it.
  Rates rates_at(Index step) const {
    const Index per_epoch = train_->batches();
    const Index epochs = step < files_.first_step() ? files_.epochs_before() : x_.train.epochs;
    return rates_of(x_.optim, step - files_.recounted(), per_epoch, epochs * per_epoch);
  }
  double lr_of(Index step) const { return rates_at(step).lr; }

  /// Called before weights are saved: non-finite weights never replace existing files.
  void require_finite_weights(const Parameters<T>& parameters) const {
    if (!all_finite(parameters)) diverged(fmt::format("by step {}: the weights are not finite", progress_.step));
  }

  [[noreturn]] void diverged(const std::string& what) const {
    fail_diverged(what, progress_, files_.saved_note(), x_.optim);
  }

  bool interrupted() const { return ranks_.any(options_.interrupt && *options_.interrupt); }
  bool out_of_patience() const { return x_.train.patience > 0 && progress_.since_best >= x_.train.patience; }
  bool at_step_limit() const { return x_.train.max_steps > 0 && progress_.step >= x_.train.max_steps; }
  bool at_end() const { return progress_.epoch == x_.train.epochs || out_of_patience(); }

  const Experiment& x_;
  const TrainOptions& options_;
  Ranks& ranks_;
  TrainObserver silent_;
  TrainObserver& observer_;
  const Model& model_;
  Task<T>& task_;
  const ModelCost cost_;
  std::unique_ptr<BatchSource<T>> train_, validation_, test_;
  RunState<T> state_;
  RunProgress& progress_ = state_.progress;
  RunFiles<T> files_;
  BatchGradient<T> gradient_;
  SavedBuffers<T> before_step_;
  Clock::time_point epoch_start_;
  Index epoch_start_batch_ = 0;  ///< batches of the current epoch completed before this process continued it
};

}  // namespace

template <class T>
Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer, const Model& model,
              Task<T>& task) {
  require(options.check || !options.run.empty(), "the run directory's name is empty");
  if (!options.run.empty() && options.ranks->writes()) require_startable(RunPaths(options.run), options);
  require(!options.resume || options.init.empty(),
          "--init {}: a resumed run continues from its own weights; drop one of --init and --resume", options.init);
  if (!options.check) return Run<T>(experiment, options, observer, model, task).train();
  Experiment checked = experiment;
  checked.train.log_steps = false;
  checked.train.on_nonfinite = "stop";
  return Run<T>(checked, options, observer, model, task).check();
}

template Outcome train(const Experiment&, const TrainOptions&, TrainObserver&, const Model&, Task<float>&);
template Outcome train(const Experiment&, const TrainOptions&, TrainObserver&, const Model&, Task<double>&);

Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer) {
  validate(experiment);
  Experiment x = experiment;
  x.data.verify = true;
  if (options.resume)
    if (const std::optional<DataRecord> record = read_data_record(RunPaths(options.run))) use_record(x, *record);
  const std::unique_ptr<Model> model = make_model(x);
  if (x.train.dtype == "f64") return train(x, options, observer, *model, *make_task<double>(x, *model));
  return train(x, options, observer, *model, *make_task<float>(x, *model));
}

}  // namespace heed
