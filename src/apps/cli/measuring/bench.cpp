// heed bench: speed of this host, of the kernels relative to its limits, and of training and inference.
#include "bench_forms.h"
#include "src/apps/cli/shared/commands.h"

#include "heed/base/suggest.h"
#include "heed/bench/instructions.h"
#include "heed/bench/timing.h"
#include "heed/train/runs/run.h"

#include <fmt/format.h>
#include <sys/times.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace heed::cli {

namespace {

/// A progress line, redrawn on a terminal; not printed elsewhere.
class Progress {
 public:
  ~Progress() { show(""); }
  void show(const std::string& what) const {
    if (terminal_) std::cerr << "\r\033[K" << what << std::flush;
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO);
};

/// Returns the CPU time of this process and its terminated children.
double processor_seconds() {
  tms t{};
  times(&t);
  return static_cast<double>(t.tms_utime + t.tms_stime + t.tms_cutime + t.tms_cstime) /
         static_cast<double>(sysconf(_SC_CLK_TCK));
}

void add_warning(SuiteResult& result, std::string warning) {
  std::cerr << "heed: warning: " << warning << "\n";
  result.warnings.push_back(std::move(warning));
}

SuiteResult run_suite(const BenchArguments& a, const Baseline& baseline) {
  const auto wanted = [&](const std::string& section) {
    if (a.shares) return section == "kernels";
    return a.only.empty() || std::ranges::find(a.only, section) != a.only.end();
  };
  const auto lacks = [&](const std::string& name) { return name.find(a.match) == std::string::npos; };
  std::vector<bench::KernelCase> kernels = wanted("kernels") ? bench::kernel_cases() : std::vector<bench::KernelCase>{};
  std::vector<ModelCase> models = wanted("models") ? model_cases() : std::vector<ModelCase>{};
  std::erase_if(kernels, [&](const bench::KernelCase& kernel) { return lacks(kernel.name()); });
  std::erase_if(models, [&](const ModelCase& model) { return lacks(model.name); });
  require(a.match.empty() || !kernels.empty() || !models.empty() || (!a.only.empty() && wanted("times")),
          "bench: --match {}: no selected kernel or model has a name that contains it", in_quotes(a.match));
  std::vector<std::string> names{bench::name_of(bench::Resource::gemm)};  // a limit, which is always measured
  for (const bench::KernelCase& kernel : kernels) names.push_back(kernel.name());
  for (const ModelCase& model : models) names.push_back(model.name);
  baseline.require_common(names);

  const double seconds = a.seconds > 0 ? a.seconds : 1;
  const Progress progress;
  const bench::Limits limits(seconds / 10, [&](const std::string& what) { progress.show(what); });
  SuiteResult result;
  result.limits = limits.all();
  for (const bench::KernelCase& kernel : kernels) {
    progress.show("kernels: " + kernel.name());
    result.kernels.push_back(measure(kernel, limits, seconds / 10));
  }
  // With --match, times are calibrated only if --only selects them.
  if (wanted("times") && (a.match.empty() || !a.only.empty()))
    result.times = bench::calibrate(result.limits, Json::parse(environment_json()).at("cpu").text(), seconds / 10,
                                    a.match, [&](const std::string& what) { progress.show(what); });
  // An apparent slowdown may come from other load on the host, so the kernel is measured again later.
  for (int turn = 0; turn < 3; ++turn)
    for (std::size_t i = 0; i < kernels.size(); ++i)
      if (baseline.lost(result.kernels[i])) {
        progress.show("again: " + kernels[i].name());
        const bench::KernelResult again = measure(kernels[i], limits, seconds / 10);
        if (share_of(again) > share_of(result.kernels[i])) result.kernels[i] = again;
      }
  for (const ModelCase& model : models) {
    progress.show("models: " + model.name);
    result.models.push_back(measure(model, limits, seconds));
  }
  return result;
}

/// Measures the host, the kernels and the standard models.
int bench_suite(const BenchArguments& a) {
  const Baseline baseline(a.compare);
  const std::vector<std::string> narrow = bench::narrow_parts();
  const bench::Clock::time_point start = bench::Clock::now();
  SuiteResult result = run_suite(a, baseline);
  for (const std::string& warning : narrow) add_warning(result, warning);
  for (const std::string& warning : baseline.warnings(result)) add_warning(result, warning);
  // heed keeps at least one thread busy, so less CPU time than elapsed time means that other programs ran.
  const double busy = processor_seconds() / bench::seconds_since(start);
  if (busy < 0.9)
    add_warning(result,
                fmt::format("other programs used at least {:.2f} s of each second, so the measured rates are too low",
                            1 - busy));
  if (a.shares) {
    std::cout << shares_json(result).dump(1) << "\n";
    return ok;
  }
  const Json json = suite_json(result);
  if (a.json) {
    baseline.print_json(json);
    return ok;
  }
  print_suite(result);
  baseline.print(json);
  return ok;
}

int bench_command(const BenchArguments& a) {
  use_threads(a.threads);
  require(!a.shares || (!a.json && a.model.empty() && a.compare.empty() && a.only.empty()),
          "bench: --shares prints JSON of kernels; expected no MODEL, --only, --json or --compare");
  if (!a.model.empty()) {
    require(a.only.empty() && a.match.empty(), "bench: {} and {}: --only and --match apply only without a MODEL",
            in_quotes(a.model), a.only.empty() ? "--match" : "--only");
    return a.scaling ? bench_scaling(a) : bench_model(a);
  }
  require(started_processes().count() == 1, "bench: {} processes were started; expected one process, or a MODEL",
          started_processes().count());
  const char* const stray = a.batch > 0       ? "--batch"
                            : !a.mode.empty() ? "--mode"
                            : !a.sets.empty() ? "--set"
                            : a.profile       ? "--profile"
                            : a.scaling       ? "--scaling"
                                              : nullptr;
  require(!stray, "bench: {} requires a MODEL", stray ? stray : "");
  return bench_suite(a);
}

}  // namespace

void add_bench(Command program) {
  static BenchArguments a;
  Command command = program.command(
      "bench", "Measure this machine's limits, the kernels and the standard models; or one model on random examples");
  command.option("MODEL", &a.model, "model or experiment file (TOML); default: everything");
  add_sets(command, a.sets, "override a key of the file; repeatable", config_keys());
  command.option("--batch", &a.batch, "examples per step; default: train.batch", {.range = {{1, 1'000'000}}});
  command.option("--mode", &a.mode,
                 "train (default): forward, backward, optimiser; infer: forward; write: a sequence, token by token",
                 {.one_of = {"train", "infer", "write"}});
  add_threads(command, a.threads);
  command.option("--seconds", &a.seconds,
                 "duration of the measurement; default 8. Without MODEL: duration for each model, default 1; limits, "
                 "kernels and times are measured for a tenth of this",
                 {.range = {{0.001, 86'400}}});
  command.option("--profile", &a.profile, "print the time of training steps by operation");
  command.option("--scaling", &a.scaling,
                 "measure training of MODEL with 1, 2, 4 and more threads up to the number of cores, and in 2 and 4 "
                 "processes; predict several hosts");
  command.option("--draw", &a.drawing, "also draw the speed-up by threads",
                 {.value = "FILE.svg", .needs = "--scaling"});
  command.option("--only", &a.only,
                 "without MODEL: limits, kernels, models, times (for heed cost --time), or several of them; limits are "
                 "always measured",
                 {.one_of = {"limits", "kernels", "models", "times"}, .commas = true});
  command.option("--match", &a.match, "without MODEL: kernels and models whose name contains this", {.value = "TEXT"});
  command.option("--compare", &a.compare,
                 "compare the results with an earlier --json; or the kernels with an earlier --shares, with a warning "
                 "for each kernel whose share fell by more than a tenth",
                 {.value = "OLD.json"});
  command.option(
      "--shares", &a.shares,
      "without MODEL: print the share of its limit that each kernel reaches, as one JSON object for --compare");
  command.option("--json", &a.json, "print one JSON object");
  command.action([] { return bench_command(a); });
}

}  // namespace heed::cli
