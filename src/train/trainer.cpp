#include "heed/train/trainer.h"

#include "heed/analysis/cost_json.h"

#include "heed/io/file.h"
#include "heed/io/weights.h"
#include "heed/train/checkpoint.h"
#include "heed/train/run.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <filesystem>

namespace heed {

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// Everything a run works with. Made in the order of its members, all of it before the first file is written.
template <class T>
class Run {
 public:
  Run(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer);
  Outcome operator()();

 private:
  void begin();
  Outcome run();
  bool train_epoch();
  void make_step(const Batch<T>& batch);
  bool finish_epoch();
  bool test();
  void save_last();
  void save_best();
  bool interrupted() const { return options_.interrupt && *options_.interrupt; }
  bool at_step_limit() const { return x_.train.max_steps > 0 && progress_.step >= x_.train.max_steps; }
  RunState<T> state() { return {parameters_, optimizer_, average_, progress_}; }
  Parameters<T>& judged() { return average_ ? *average_ : parameters_; }
  StepReport report() const;
  double lr_of(Index step) const {
    const Index per_epoch = train_loader_.batches();
    return learning_rate(x_.optim, step, per_epoch, x_.train.epochs * per_epoch);
  }

  const Experiment& x_;
  const TrainOptions& options_;
  TrainObserver& observer_;
  RunPaths paths_;
  VisionTransformer model_;
  ModelCost cost_;
  std::unique_ptr<Dataset> train_set_, test_set_;
  Subsets subsets_;
  Loader<T> train_loader_, test_loader_;
  std::optional<Loader<T>> validation_loader_;
  Parameters<T> parameters_;
  Optimizer<T> optimizer_;
  std::optional<Parameters<T>> average_;
  BatchGradient<T> gradient_;
  RunProgress progress_;
  std::optional<MetricsFile> metrics_;
  Clock::time_point epoch_start_;
  Index epoch_start_batch_ = 0;
};

ImageSize input_of(const ModelConfig& model) { return {model.channels, model.image, model.image}; }

std::unique_ptr<Dataset> open(const Experiment& x, Split split) {
  std::unique_ptr<Dataset> set = open_dataset(x.data.name, x.data.path, split);
  const Index classes = static_cast<Index>(set->class_names().size());
  require(classes == x.model.classes, "[model] classes = {}, but {} has {} classes; set model.classes={}",
          x.model.classes, x.data.name, classes, classes);
  return set;
}

CostQuery step_cost(const Experiment& x, Convention convention) {
  return {convention, CostPass::step, CostGroup::layer, x.train.batch};
}

/// cost.json: what a training step costs per image, in both conventions.
std::string cost_file(const Experiment& x, const ModelCost& cost) {
  nlohmann::ordered_json json;
  for (const auto& [name, convention] : {std::pair("contractions", Convention::contractions), {"all", Convention::all}})
    json[name] = cost_json(cost, step_cost(x, convention), default_energy_table());
  return json.dump(1) + "\n";
}

template <class T>
Run<T>::Run(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer)
    : x_(experiment),
      options_(options),
      observer_(observer),
      paths_(options.run),
      model_(x_.model, x_.attention, x_.train.dropout, x_.train.drop_path),
      cost_(cost_of(model_)),
      train_set_(open(x_, Split::train)),
      test_set_(open(x_, Split::test)),
      subsets_(split_validation(train_set_->size(), x_.data, static_cast<std::uint64_t>(x_.train.seed))),
      train_loader_(*train_set_, subsets_.train, x_.data, input_of(x_.model), x_.train.batch,
                    static_cast<std::uint64_t>(x_.train.seed), true),
      test_loader_(*test_set_, all_images(test_set_->size()), x_.data, input_of(x_.model), x_.train.batch, 0, false),
      parameters_(model_.parameters()),
      optimizer_(x_.optim, parameters_),
      gradient_(model_, parameters_, x_.train.batch, x_.train) {
  if (!subsets_.validation.empty())
    validation_loader_.emplace(*train_set_, subsets_.validation, x_.data, input_of(x_.model), x_.train.batch, 0, false);
  parameters_.initialise(static_cast<std::uint64_t>(x_.train.seed));
  if (!options_.init.empty())
    load_weights(SafetensorsFile(options_.init), parameters_, {.new_head = x_.train.init_head});
  if (x_.train.ema > 0) average_.emplace(parameters_);
}

template <class T>
void Run<T>::begin() {
  if (options_.resume) {
    check_same_experiment(paths_, x_);
    load_checkpoint(paths_.last(), state());
  } else {
    std::error_code error;
    std::filesystem::create_directories(paths_.directory, error);
    require(!error, "{}: cannot be made: {}", paths_.directory, error.message());
  }
  write_file(paths_.config(), to_toml(x_));
  write_file(paths_.environment(), environment_json());
  write_file(paths_.cost(), cost_file(x_, cost_));
  metrics_.emplace(paths_.metrics(), progress_.epoch, progress_.step);
  // From here on the directory can be resumed, whatever happens, and it is known that there is room for checkpoints.
  if (!options_.resume) save_last();

  TrainPlan plan;
  plan.parameters = parameters_.list().trainable_elements();
  plan.train_images = static_cast<Index>(subsets_.train.size());
  plan.validation_images = static_cast<Index>(subsets_.validation.size());
  plan.test_images = test_set_->size();
  plan.steps_per_epoch = train_loader_.batches();
  plan.epoch = progress_.epoch;
  plan.step = progress_.step;
  plan.run = paths_.directory;
  const Counts counts = cost_total(cost_, step_cost(x_, Convention::contractions)).counts;
  plan.operations = counts.mul + counts.add;
  plan.energy_pj = energy_pj(default_energy_table(), counts);
  observer_.begin(plan);
}

template <class T>
Outcome Run<T>::operator()() {
  begin();
  if (options_.profile) gradient_.start_profile();
  const Outcome outcome = run();
  if (options_.profile) *options_.profile = gradient_.profile();
  return outcome;
}

template <class T>
Outcome Run<T>::run() {
  while (progress_.epoch < x_.train.epochs) {
    const bool completed = train_epoch() && finish_epoch();
    save_last();
    if (interrupted()) return Outcome::interrupted;
    if (!completed || (at_step_limit() && progress_.epoch < x_.train.epochs)) return Outcome::stopped;
  }
  return test() ? Outcome::finished : Outcome::interrupted;
}

/// Goes on with the current epoch; false if it was left before its end.
template <class T>
bool Run<T>::train_epoch() {
  train_loader_.start(progress_.epoch, progress_.batch);
  epoch_start_ = Clock::now();
  epoch_start_batch_ = progress_.batch;
  while (progress_.batch < train_loader_.batches()) {
    if (at_step_limit() || interrupted()) return false;
    make_step(*train_loader_.next());
    observer_.step(report());
    const bool last = progress_.batch == train_loader_.batches();
    if (!last && x_.train.checkpoint_steps > 0 && progress_.step % x_.train.checkpoint_steps == 0) save_last();
  }
  return true;
}

template <class T>
void Run<T>::make_step(const Batch<T>& batch) {
  const RandomStream random = RandomStream(static_cast<std::uint64_t>(x_.train.seed))
                                  .derive("step")
                                  .derive(static_cast<std::uint64_t>(progress_.step));
  const BatchResult result = gradient_.run(batch.images.view(), batch.targets.view(), batch.labels.data(), random);
  const Clipping clipping = clip_by_norm(gradient_.gradients(), x_.optim.clip);
  if (!std::isfinite(result.loss) || !std::isfinite(clipping.norm))
    throw Diverged(
        fmt::format("training diverged at step {} of epoch {}: loss {}, gradient norm {}; a smaller optim.lr "
                    "({} here) or a longer optim.warmup_epochs may help",
                    progress_.step + 1, progress_.epoch + 1, result.loss, clipping.norm, lr_of(progress_.step)));
  optimizer_.step(parameters_, gradient_.gradients(), lr_of(progress_.step), clipping.factor);
  if (average_) {
    const T keep(x_.train.ema), share(1 - x_.train.ema);
    for (Index i = 0; i < parameters_.size(); ++i)
      average_->data()[i] = keep * average_->data()[i] + share * parameters_.data()[i];
  }
  ++progress_.step;
  ++progress_.batch;
  progress_.loss += result.loss;
  progress_.correct += result.correct;
  if (x_.train.log_steps)
    metrics_->write({"step", progress_.epoch + 1, progress_.step, result.loss,
                     static_cast<double>(result.correct) / static_cast<double>(batch.size), lr_of(progress_.step - 1),
                     report().images_per_s});
}

template <class T>
StepReport Run<T>::report() const {
  const double batches = static_cast<double>(progress_.batch), images = batches * static_cast<double>(x_.train.batch);
  const double here = static_cast<double>((progress_.batch - epoch_start_batch_) * x_.train.batch);
  return {progress_.epoch + 1,
          progress_.batch,
          progress_.step,
          progress_.loss / batches,
          static_cast<double>(progress_.correct) / images,
          lr_of(progress_.step - 1),
          here / std::max(seconds_since(epoch_start_), 1e-9)};
}

/// Validates, records and begins the next epoch; false if interrupted before that was done.
template <class T>
bool Run<T>::finish_epoch() {
  EpochReport epoch;
  epoch.train = report();
  epoch.seconds = seconds_since(epoch_start_);
  if (validation_loader_) {
    const Evaluation validation = evaluate(model_, judged(), *validation_loader_, x_.train.piece, options_.interrupt);
    if (interrupted()) return false;
    epoch.validated = true;
    epoch.validation_loss = validation.loss;
    epoch.validation_accuracy = validation.accuracy();
  }
  metrics_->write({"train", progress_.epoch + 1, progress_.step, epoch.train.loss, epoch.train.accuracy, epoch.train.lr,
                   epoch.train.images_per_s});
  if (epoch.validated)
    metrics_->write({"valid", progress_.epoch + 1, progress_.step, epoch.validation_loss, epoch.validation_accuracy});
  if (!epoch.validated || epoch.validation_accuracy > progress_.best) {
    if (epoch.validated) progress_.best = epoch.validation_accuracy;
    save_best();
  }
  ++progress_.epoch;
  progress_.batch = 0;
  progress_.loss = 0;
  progress_.correct = 0;
  observer_.epoch(epoch);
  return true;
}

/// Looks at the test set; false if interrupted before that was done.
template <class T>
bool Run<T>::test() {
  load_weights(SafetensorsFile(paths_.best()), parameters_);
  const Evaluation result = evaluate(model_, parameters_, test_loader_, x_.train.piece, options_.interrupt);
  if (interrupted()) return false;
  metrics_->write({"test", progress_.epoch, progress_.step, result.loss, result.accuracy()});
  observer_.test(result);
  return true;
}

template <class T>
void Run<T>::save_last() {
  save_checkpoint(paths_.last(), state());
}

template <class T>
void Run<T>::save_best() {
  SafetensorsWriter file;
  add_weights(file, judged());
  file.write(paths_.best());
}

}  // namespace

Outcome train(const Experiment& experiment, const TrainOptions& options, TrainObserver& observer) {
  validate(experiment);
  require(!options.run.empty(), "the run directory's name is empty");
  const RunPaths paths(options.run);
  require(options.resume || !paths.exists(), "{}: holds a run already; --resume continues it, --run DIR begins another",
          options.run);
  require(!options.resume || paths.exists(), "{}: holds no run to resume", options.run);
  require(!options.resume || options.init.empty(), "--init {}: a resumed run goes on from its own weights",
          options.init);
  if (experiment.train.dtype == "f64") return Run<double>(experiment, options, observer)();
  return Run<float>(experiment, options, observer)();
}

}  // namespace heed
