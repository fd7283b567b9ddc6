// heed bench MODEL: speed of training and inference on this host.
#include "bench_forms.h"
#include "src/apps/cli/shared/commands.h"

#include "heed/bench/instructions.h"
#include "heed/bench/timing.h"
#include "heed/config/experiment.h"
#include "heed/bench/rapl.h"
#include "heed/kernels/products/gemm.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"
#include "heed/analysis/resident_memory.h"
#include "heed/base/suggest.h"
#include "heed/nn/decoder.h"
#include "heed/nn/families.h"
#include "heed/train/optimizer.h"
#include "heed/train/inference.h"
#include "heed/train/step.h"

#include <fmt/format.h>

#include <iostream>

namespace heed::cli {

namespace {

/// Returns the number of tokens in each of a model's examples; 0 for images.
Index tokens_of(const Model& model) {
  const ModelInput<float> x = model.example();
  const auto length = [](const Sequences& s) { return s.tokens.shape().rank() > 0 ? s.tokens.shape()[1] : 0; };
  return length(x.sequences) + length(x.partners);
}

/// Times and energy of calls, and the profile of separate calls, so that profiling does not change the times.
struct Measured {
  bench::Times times;
  PackageEnergy energy;
  std::string joules{};  ///< energy.report() after the timed calls
  Profile profile{};
  Index profiled = 0;
  std::string unit{};         ///< unit of rates: "images/s", "sequences/s"
  Index tokens = 0;           ///< tokens per example; 0 for images
  double update_seconds = 0;  ///< time of a training step's update, which every process computes completely
  bench::Times exchange{};    ///< time to exchange a gradient between processes
  Index gradient_bytes = 0;
  Index sums_over_batch = 0;          ///< batch-norm sums per step
  LoopTimes loops{};                  ///< per training step
  double step_seconds = 0;            ///< mean time of a training step, including the first steps
  std::optional<double> divisible{};  ///< fraction of a step's time in which at least 32 threads have work
};

/// Calls f at least once, and until it has been called ten times or `seconds` have passed. Returns the number of calls.
template <class F>
Index profile_calls(double seconds, const F& f) {
  const bench::Clock::time_point start = bench::Clock::now();
  Index calls = 0;
  do f();
  while (++calls < 10 && bench::seconds_since(start) < seconds);
  return calls;
}

/// Generates `context` tokens one by one.
void write_sequence(Decoder<float>& decoder) {
  decoder.restart();
  Writer<float> writer(decoder);
  if (!decoder.config().start) writer.append(0);
  for (Index i = 0; i < decoder.config().context; ++i) writer.draw({}, RandomStream(1).uniform(i));
}

template <class T>
Measured measure(const BenchArguments& a, const Experiment& x, Index batch) {
  const std::unique_ptr<Model> model = make_model(x);
  const std::unique_ptr<Task<T>> task = make_task<T>(x, *model);
  const std::unique_ptr<TaskBatch<T>> examples = task->random_batch(batch);
  Parameters<T> parameters(model->parameters());
  parameters.initialise(1);
  Measured result;
  Ranks& ranks = started_processes();
  const auto agreed = [&](bool more) { return ranks.any(ranks.writes() && more); };
  result.unit = fmt::format("{}s/s", model->example_name());
  result.tokens = tokens_of(*model);
  const auto time = [&](const auto& call) {
    result.times = bench::time_calls(
        a.seconds, 0, call, [&] { result.energy.update(); }, agreed);
    result.joules = result.energy.report();
  };
  if constexpr (std::is_same_v<T, float>)
    if (a.mode == "write") {
      Decoder<float> decoder(*model, parameters);
      time([&] { write_sequence(decoder); });
      return result;
    }
  if (a.mode == "infer") {
    const Inference<T> inference(*model, parameters, microbatch_of(x.train, batch));
    time([&] {
      inference.for_microbatches(
          {0, batch}, [&](Tape<T>& tape, ExampleRange microbatch) { examples->logits(*model, tape, microbatch); });
    });
    return result;
  }
  Optimizer<T> optimizer(x.optim, parameters);
  BatchGradient<T> gradient(*model, parameters, batch, x.train, ranks);
  task->begin(parameters);
  double updates = 0;
  const auto step = [&] {
    const StepPlace place{0, 1, x.train.epochs};
    const UpdateRules rules = task->update_rules(place);
    examples->before_step(place);
    gradient.run(*examples, RandomStream(1).derive(static_cast<std::uint64_t>(optimizer.steps())));
    const bench::Clock::time_point start = bench::Clock::now();
    const Clipping clipping = clip(gradient.gradients(), x.optim.clip, rules.clip_each);
    optimizer.step(parameters, gradient.gradients(), {x.optim.lr, x.optim.weight_decay}, clipping.factor, rules.frozen);
    task->after_step(parameters, place);
    updates += bench::seconds_since(start);
  };
  start_loop_times();
  const bench::Clock::time_point start = bench::Clock::now();
  time(step);
  const double seconds = bench::seconds_since(start);
  const LoopTimes loops = loop_times();
  const double steps = static_cast<double>(optimizer.steps());
  result.step_seconds = seconds / steps;
  result.loops = {loops.open / steps, loops.busy / steps, loops.loops / optimizer.steps()};
  result.update_seconds = updates / steps;
  result.sums_over_batch = gradient.sums_over_batch();
  Gradients<T> sum(parameters);
  result.gradient_bytes = sum.size() * static_cast<Index>(sizeof(T));
  if (ranks.count() > 1)
    result.exchange = bench::time_calls(
        0.2, 0, [&] { ranks.sum(std::span(sum.data(), static_cast<std::size_t>(sum.size()))); }, [] {}, agreed);
  if (a.json && ranks.count() == 1 && threads() == 1) result.divisible = share_of_open_pieces(32, step);
  if (a.profile) {
    gradient.start_profile();
    result.profiled = profile_calls(a.seconds, step);
    result.profile = gradient.profile();
  }
  return result;
}

double peak_megabytes() { return static_cast<double>(peak_resident_bytes()) / (1 << 20); }

Json model_json(const BenchArguments& a, Index batch, Measured& result) {
  const bench::Times& times = result.times;
  const double examples = static_cast<double>(batch);
  Json json;
  json["model"] = a.model;
  json["mode"] = a.mode;
  json["batch"] = batch;
  json["unit"] = result.unit;
  json["img_s"] = examples / times.median();
  json["best_img_s"] = examples / times.best();
  json["low_img_s"] = examples / times.high();
  json["high_img_s"] = examples / times.low();
  if (const Index tokens = result.tokens; tokens > 0)
    json["tokens_s"] = examples / times.median() * static_cast<double>(tokens);
  json["ms"] = times.median() * 1e3;
  json["steps"] = times.sorted.size();
  json["peak_mb"] = peak_megabytes();
  json["threads"] = threads();
  json["processes"] = started_processes().count();
  if (a.mode == "train") {
    json["update_ms"] = result.update_seconds * 1e3;
    json["mean_ms"] = result.step_seconds * 1e3;
    json["loops_open_ms"] = result.loops.open * 1e3;
    json["loops_busy_ms"] = result.loops.busy * 1e3;
    json["loops"] = result.loops.loops;
    if (result.divisible) json["divisible_by_32"] = *result.divisible;
    json["gradient_bytes"] = result.gradient_bytes;
    json["sums_over_batch"] = result.sums_over_batch;
    if (!result.exchange.sorted.empty()) json["exchange_ms"] = result.exchange.median() * 1e3;
  }
  json["blas"] = kernels::gemm_library();
  json["package_j"] = result.energy.unavailable().empty() ? Json(result.energy.joules()) : Json(result.joules);
  for (const Profile::Row& row : result.profile.rows()) {
    const double ms = 1e3 / static_cast<double>(result.profiled);
    json["profile_ms"][row.operation] = Json::object({{"forward", row.forward * ms}, {"backward", row.backward * ms}});
  }
  return json;
}

}  // namespace

int bench_model(const BenchArguments& given) {
  BenchArguments a = given;
  if (a.mode.empty()) a.mode = "train";
  if (a.seconds == 0) a.seconds = 8;
  require(!a.profile || a.mode == "train", "bench: --profile requires --mode train, not {}", a.mode);
  const Experiment x = load_experiment(a.model, a.sets);
  require(a.mode == "train" || x.train.dtype != "bf16",
          "bench: train.dtype = \"bf16\" requires --mode train, not {}; for inference as in heed eval, add --set "
          "train.dtype=f32",
          a.mode);
  require(started_processes().count() == 1 || (a.mode == "train" && !a.profile),
          "bench: several processes require --mode train, without --profile");
  require(a.mode != "write" || (x.train.dtype == "f32" && a.batch <= 1),
          "bench: --mode write writes one sequence in float32; expected train.dtype = \"f32\" and no --batch");
  const Baseline baseline(a.compare);
  require(!baseline.holds_shares(),
          "bench: {} holds measurements of kernels; expected --json output of bench with a model", a.compare);
  const Index batch = a.mode == "write" ? 1 : a.batch > 0 ? a.batch : x.train.batch;
  baseline.require_common({fmt::format("{} {}, batch {}", a.model, a.mode, batch)});
  Measured result = x.train.dtype == "f64" ? measure<double>(a, x, batch) : measure<float>(a, x, batch);
  const Json json = model_json(a, batch, result);
  if (a.json) {
    baseline.print_json(json);
    return ok;
  }
  for (const std::string& warning : bench::narrow_parts()) std::cerr << "heed: warning: " << warning << "\n";
  const bench::Times& times = result.times;
  const std::string tokens =
      json.contains("tokens_s") ? fmt::format(", {} tokens/s", digits(json.at("tokens_s").number())) : "";
  std::cout << fmt::format(
      "{} {}, batch {}: {} {}{} (median of {}), best {}; {:.2f} ms per step, 10 % to 90 %: {:.2f} to {:.2f}\n"
      "peak memory {:.0f} MB, {}, {}\nenergy of the processor packages: {}\n",
      printable(a.model), a.mode, batch, digits(json.at("img_s").number()), result.unit, tokens, times.sorted.size(),
      digits(json.at("best_img_s").number()), times.median() * 1e3, times.low() * 1e3, times.high() * 1e3,
      peak_megabytes(), counted(threads(), "thread"), kernels::gemm_library(), result.joules);
  if (a.profile) print_profile(result.profile, result.profiled);
  baseline.print(json);
  return ok;
}

}  // namespace heed::cli
