// heed bench: speed of this host, of the kernels relative to its limits, and of training and inference.
#include "bench_forms.h"
#include "src/apps/cli/shared/commands.h"

#include "heed/base/suggest.h"

namespace heed::cli {

namespace {

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
