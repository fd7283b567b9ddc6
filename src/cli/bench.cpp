// heed bench: how fast a model trains or classifies on this machine.
#include "commands.h"
#include "profile_table.h"

#include "heed/config.h"
#include "heed/cost/rapl.h"
#include "heed/kernels/gemm.h"
#include "heed/parallel.h"
#include "heed/train/optimizer.h"
#include "heed/train/step.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

#include <chrono>
#include <iostream>

namespace heed::cli {

namespace {

struct Arguments {
  std::string model, mode = "train";
  std::vector<std::string> sets;
  Index batch = 0;
  int threads = 0;
  double seconds = 8;
  bool json = false, profile = false;
};

using Clock = std::chrono::steady_clock;

constexpr Index profiled_steps = 10;

/// Times of calls in seconds, ascending, and the energy they took.
struct Measured {
  std::vector<double> times;
  PackageEnergy energy;
  Profile profile{};  ///< of further calls, so that taking it has no part in the times
};

/// Measures calls of f for about `seconds` and at least five calls, after warming up.
template <class F>
Measured measured(double seconds, const F& f) {
  const auto since = [](Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  const Clock::time_point warm_up = Clock::now();
  for (int i = 0; i < 3 && (i < 2 || since(warm_up) < 3); ++i) f();
  Measured m;
  const Clock::time_point start = Clock::now();
  while (since(start) < seconds || m.times.size() < 5) {
    const Clock::time_point call = Clock::now();
    f();
    m.times.push_back(since(call));
    m.energy.update();
  }
  std::sort(m.times.begin(), m.times.end());
  return m;
}

template <class T>
Measured measure(const Arguments& a, const Experiment& x, Index batch) {
  const ModelConfig& m = x.model;
  const VisionTransformer model(m, x.attention, x.train.dropout, x.train.drop_path);
  Parameters<T> parameters(model.parameters());
  parameters.initialise(1);
  const RandomStream random(1);
  Tensor<T> images(Shape{batch, m.channels, m.image, m.image}), targets(Shape{batch, m.classes});
  for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<T>(random.normal(i));
  std::vector<int> labels;
  for (Index i = 0; i < batch; ++i) {
    labels.push_back(static_cast<int>(random.derive(1).below(i, m.classes)));
    targets[i * m.classes + labels.back()] = 1;
  }
  const View<const T> image_view = std::as_const(images).view();
  if (a.mode == "infer") {
    Inference<T> inference(model, parameters, x.train.piece);
    Tensor<T> logits(Shape{batch, m.classes});
    return measured(a.seconds, [&] { inference.run(image_view, logits.data()); });
  }
  Optimizer<T> optimizer(x.optim, parameters);
  BatchGradient<T> gradient(model, parameters, batch, x.train);
  const auto step = [&] {
    gradient.run(image_view, std::as_const(targets).view(), labels.data(),
                 random.derive(static_cast<std::uint64_t>(optimizer.steps())));
    const Clipping clipping = clip_by_norm(gradient.gradients(), x.optim.clip);
    optimizer.step(parameters, gradient.gradients(), x.optim.lr, clipping.factor);
  };
  Measured result = measured(a.seconds, step);
  if (a.profile) {
    gradient.start_profile();
    for (Index i = 0; i < profiled_steps; ++i) step();
    result.profile = gradient.profile();
  }
  return result;
}

double peak_megabytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

int bench_command(const Arguments& a) {
  require(!a.profile || a.mode == "train", "bench: --profile is for --mode train, not {}", a.mode);
  use_threads(a.threads);
  const Experiment x = load_experiment(a.model, a.sets);
  const Index batch = a.batch > 0 ? a.batch : x.train.batch;
  Measured result = x.train.dtype == "f64" ? measure<double>(a, x, batch) : measure<float>(a, x, batch);
  const std::vector<double>& times = result.times;
  const double median = times[times.size() / 2], best = times.front(), images = static_cast<double>(batch);
  if (a.json) {
    nlohmann::ordered_json json;
    json["model"] = a.model;
    json["mode"] = a.mode;
    json["batch"] = batch;
    json["img_s"] = images / median;
    json["best_img_s"] = images / best;
    json["ms"] = median * 1e3;
    json["steps"] = times.size();
    json["peak_mb"] = peak_megabytes();
    json["threads"] = threads();
    json["blas"] = kernels::gemm_library();
    if (result.energy.unavailable().empty())
      json["package_j"] = result.energy.joules();
    else
      json["package_j"] = result.energy.report();
    for (const Profile::Row& row : result.profile.rows()) {
      const double ms = 1e3 / static_cast<double>(profiled_steps);
      json["profile_ms"][row.operation] = {{"forward", row.forward * ms}, {"backward", row.backward * ms}};
    }
    std::cout << json.dump() << "\n";
    return ok;
  }
  std::cout << fmt::format(
      "{} {}, batch {}: {:.0f} images/s (median of {}), best {:.0f}; {:.2f} ms per step, 10 % to 90 %: {:.2f} to "
      "{:.2f}\n"
      "peak memory {:.0f} MB, {} threads, {}\nenergy of the processor packages: {}\n",
      a.model, a.mode, batch, images / median, times.size(), images / best, median * 1e3,
      times[times.size() / 10] * 1e3, times[times.size() * 9 / 10] * 1e3, peak_megabytes(), threads(),
      kernels::gemm_library(), result.energy.report());
  if (a.profile) print_profile(result.profile, profiled_steps);
  return ok;
}

}  // namespace

void add_bench(CLI::App& app, const AddVerb& add) {
  static Arguments a;
  auto* const command = app.add_subcommand("bench", "Measure training steps or inference on random images");
  command->add_option("MODEL", a.model, "model or experiment file (TOML)")->required();
  add_sets(command, a.sets, "override a key of the file; repeatable");
  command->add_option("--batch", a.batch, "images per step; default: train.batch")->check(CLI::Range(1, 1'000'000));
  command->add_option("--mode", a.mode, "train: forward, backward, optimiser; infer: forward")
      ->check(CLI::IsMember({"train", "infer"}));
  add_threads(command, a.threads);
  command->add_option("--seconds", a.seconds, "how long to measure")->check(CLI::Range(0.001, 86'400.0));
  command->add_flag("--profile", a.profile, "show where the time of training steps goes, by operation");
  command->add_flag("--json", a.json, "one JSON object");
  add(command, [] { return bench_command(a); });
}

}  // namespace heed::cli
