// Calibration of the time model: the coefficients of each kind of operation, measured on many small models.
#include "heed/bench/time_model.h"

#include "heed/base/parallel.h"
#include "calibration_models.h"
#include "nonnegative.h"
#include "heed/bench/rapl.h"
#include "heed/bench/timing.h"
#include "heed/nn/families.h"
#include "heed/train/optimizer.h"
#include "heed/train/inference.h"
#include "heed/train/step.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <memory>

namespace heed::bench {

namespace {

/// Returns the experiment's model; a Vision Transformer that cannot have a class token gets mean pooling. Null if the
/// model cannot be created, for example if its mechanism does not support the sizes.
std::unique_ptr<Model> model_of(Experiment& x) {
  for (const char* const pool : {"cls", "mean"}) {
    if (x.model.family == "vit") x.model.pool = pool;
    try {
      return make_model(x);
    } catch (const Error&) {
    }
  }
  return nullptr;
}

using Place = std::pair<std::string, std::string>;  ///< operation and layer

constexpr double unmeasured = std::numeric_limits<double>::infinity();

void lower(double& time, double measured) { time = std::min(time, measured); }

void lower(std::map<Place, LayerTime>& times, const std::map<Place, LayerTime>& measured) {
  for (const auto& [place, time] : measured) {
    LayerTime& least = times.try_emplace(place, LayerTime{"", unmeasured, unmeasured}).first->second;
    lower(least.forward, time.forward), lower(least.backward, time.backward);
  }
}

/// Measurements of a model. Each time except `busy` is the minimum over all sweeps.
struct Sample {
  const Candidate* candidate;
  std::unique_ptr<Model> model;
  Workload work;
  double step = unmeasured, pass = unmeasured;  ///< seconds of a training step, and of inference on a batch
  std::map<Place, LayerTime> operations{};      ///< times in a step, summed over threads
  std::map<Place, LayerTime> still{};           ///< times in inference
  double joules = 0, busy = 0;                  ///< energy and seconds of training, summed over sweeps
};

struct Calls {
  int count = 0;
  double seconds = 0;  ///< total time

  double mean() const { return seconds / count; }
};

/// Calls f for about `seconds`, and at least twice.
template <class F>
Calls repeat(double seconds, const F& f) {
  Calls calls;
  const Clock::time_point start = Clock::now();
  do {
    f();
    ++calls.count, calls.seconds = seconds_since(start);
  } while (calls.count < 2 || calls.seconds < seconds);
  return calls;
}

/// Returns the mean time of each operation per call of f, summed over threads.
template <class Profiled, class F>
std::map<Place, LayerTime> profile_of(Profiled& profiled, const F& f, double seconds) {
  profiled.start_profile(true);
  const int calls = repeat(seconds, f).count;
  const Profile profile = profiled.profile();
  std::map<Place, LayerTime> times;
  for (const Profile::Row& row : profile.rows())
    times[{row.operation, row.layer ? *row.layer : ""}] = {"", row.forward / calls, row.backward / calls};
  return times;
}

/// Measures a model in one sweep: steps and their operations for about `seconds` each, inference and its operations for
/// half as long each.
void measure(Sample& sample, double seconds) {
  const Experiment& x = sample.candidate->experiment;
  const Model& model = *sample.model;
  const Index batch = sample.candidate->batch;
  const std::unique_ptr<Task<float>> task = make_task<float>(x, model);
  const std::unique_ptr<TaskBatch<float>> examples = task->random_batch(batch);
  Parameters<float> parameters(model.parameters());
  parameters.initialise(1);
  Optimizer<float> optimizer(x.optim, parameters);
  BatchGradient<float> gradient(model, parameters, batch, x.train);
  const auto step = [&] {
    gradient.run(*examples, RandomStream(1));
    const Clipping clipping = clip(gradient.gradients(), x.optim.clip, false);
    optimizer.step(parameters, gradient.gradients(), {1e-6, x.optim.weight_decay}, clipping.factor, {});
  };
  step();  // warms up
  PackageEnergy energy;
  const Calls steps = repeat(seconds, step);
  energy.update();
  lower(sample.step, steps.mean());
  sample.busy += steps.seconds;
  sample.joules += energy.joules();

  lower(sample.operations, profile_of(gradient, step, seconds));

  Inference<float> inference(model, parameters, microbatch_of(x.train, batch));
  const auto pass = [&] {
    inference.for_microbatches(
        {0, batch}, [&](Tape<float>& tape, ExampleRange microbatch) { examples->logits(model, tape, microbatch); });
  };
  pass();
  lower(sample.pass, repeat(seconds / 2, pass).mean());
  lower(sample.still, profile_of(inference, pass, seconds / 2));
}

/// Measurements of operations by kind. The key "attention:NAME" has those of all variants of a mechanism, the key ""
/// those of all operations.
using Fits = std::map<std::string, Fit>;

/// Returns the wider kind, which guides the fit of a kind with few measurements: "attention:aft" for "attention:aft
/// variant=simple", "" for "linear".
std::string wider(const std::string& kind) {
  const std::size_t space = kind.find(' ');
  return space == std::string::npos ? "" : kind.substr(0, space);
}

/// Adds a sample's measurements of one pass to `fits`: of the backward pass if `back`, otherwise of the forward pass in
/// training or inference.
void add_operations(const Machine& machine, const Sample& sample, bool training, bool back, Fits& fits) {
  const std::map<Place, LayerTime>& times = training ? sample.operations : sample.still;
  const auto seconds = [&](const Place& place) {
    const auto measured = times.find(place);
    return measured == times.end() ? 0 : back ? measured->second.backward : measured->second.forward;
  };
  struct Sums {
    std::string kind;
    std::vector<double> amounts = std::vector<double>(amount::count);
  };
  std::map<Place, Sums> places;
  for (const OperationCost& operation : training ? sample.work.training : sample.work.inference) {
    Sums& sums = places[{operation.operation, operation.layer}];
    sums.kind = sample.work.kind(operation);
    for (const Index size : microbatch_sizes(sample.work, training)) {
      const double count = static_cast<double>(size), bytes = microbatch_bytes(sample.work, training, count);
      const std::vector<double> amounts = amounts_of(machine, operation, back, count, bytes);
      for (std::size_t i = 0; i < amounts.size(); ++i) sums.amounts[i] += amounts[i];
    }
  }
  double all = 0;
  for (const auto& [place, sums] : places) all += seconds(place);
  for (const auto& [place, sums] : places) {
    const double measured = seconds(place);
    if (measured <= 0) continue;
    for (std::string kind = sums.kind;; kind = wider(kind)) {
      fits[kind].add(sums.amounts, measured, measured / all);
      if (kind.empty()) break;
    }
  }
}

/// Weight of the penalty on differences from the usual coefficients (nonnegative.h): small, but enough that neither of
/// two nearly collinear amounts gets a coefficient of zero.
constexpr double pull = 3e-3;

/// Fits the coefficients of each kind, with a penalty on differences from the coefficients of the wider kind. The wider
/// kind is fitted first, since its name sorts first.
std::map<std::string, Coefficients> coefficients_of(const Fits& fits) {
  std::map<std::string, Coefficients> found;
  for (const auto& [kind, fit] : fits)
    found[kind] = nonnegative_fit(fit, kind.empty() ? usual_operation() : found.at(wider(kind)), pull);
  return found;
}

}  // namespace

TimeModel calibrate(const std::vector<Limit>& limits, const std::string& cpu, double seconds, const std::string& match,
                    const std::function<void(const std::string&)>& progress) {
  TimeModel model;
  model.machine = machine_of(limits, threads(), cpu);
  std::vector<Candidate> all = candidates();
  std::vector<Sample> samples;
  for (Candidate& candidate : all) {
    std::unique_ptr<Model> of = model_of(candidate.experiment);
    if (!of || candidate.name.find(match) == std::string::npos) continue;
    samples.push_back({&candidate, std::move(of), Workload(candidate.experiment, candidate.batch)});
  }
  require(!samples.empty(), "bench: --match '{}': no model of --only times has a name that contains it", match);
  // Measures in sweeps over all models, so that a short period of other load affects only one of each model's
  // measurements.
  constexpr int sweeps = 3;
  for (int sweep = 1; sweep <= sweeps; ++sweep)
    for (Sample& sample : samples) {
      progress(fmt::format("times, {} of {}: {}", sweep, sweeps, sample.candidate->name));
      measure(sample, seconds / sweeps);
    }
  Fits forward, backward, still;
  for (const Sample& sample : samples) {
    // True if threads take whole lanes or microbatches, so that each operation runs on one thread.
    const auto apart = [&](bool training) {
      return step_amounts(model.machine, sample.work, training, 1)[step_amount::spread] == 0;
    };
    if (apart(true)) {
      add_operations(model.machine, sample, true, false, forward);
      add_operations(model.machine, sample, true, true, backward);
    }
    if (apart(false)) add_operations(model.machine, sample, false, false, still);
  }
  // A kind that is missing from one of the passes gets the coefficients of the wider kind for that pass.
  for (Fits* const fits : {&forward, &backward, &still})
    for (const Fits* const others : {&forward, &backward, &still})
      for (const auto& [kind, fit] : *others) (*fits)[kind];
  model.forward = coefficients_of(forward);
  model.backward = coefficients_of(backward);
  model.still = coefficients_of(still);
  Fit steps, passes;
  double joules = 0, busy = 0;
  for (const Sample& sample : samples)
    for (const bool training : {true, false}) {
      double sum = 0;
      for (const LayerTime& layer : model.layer_times(sample.work, training)) sum += layer.forward + layer.backward;
      (training ? steps : passes)
          .add(step_amounts(model.machine, sample.work, training, sum), training ? sample.step : sample.pass);
      if (training) joules += sample.joules, busy += sample.busy;
    }
  model.training = nonnegative_fit(steps, usual_step(), pull);
  model.inference = nonnegative_fit(passes, usual_step(), pull);
  model.no_watts = PackageEnergy().unavailable();
  model.watts = joules / busy;
  return model;
}

}  // namespace heed::bench
