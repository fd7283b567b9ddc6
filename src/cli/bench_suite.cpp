// heed bench: the machine's limits, the kernels and the standard models.
#include "bench_forms.h"
#include "commands.h"

#include "../bench/instructions.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>

namespace heed::cli {

namespace {

/// A line that is drawn over on a terminal, and not at all elsewhere.
class Progress {
 public:
  ~Progress() { show(""); }
  void show(const std::string& what) const {
    if (terminal_) std::cerr << "\r\033[K" << what << std::flush;
  }

 private:
  bool terminal_ = isatty(STDERR_FILENO);
};

SuiteResult run_suite(const BenchArguments& a) {
  const auto wanted = [&](const char* section) {
    return a.only.empty() || std::find(a.only.begin(), a.only.end(), section) != a.only.end();
  };
  const auto matches = [&](const std::string& name) { return name.find(a.match) != std::string::npos; };
  const double seconds = a.seconds > 0 ? a.seconds : 1;
  const Progress progress;
  const bench::Limits limits(seconds / 10, [&](const std::string& what) { progress.show(what); });
  SuiteResult result;
  result.limits = limits.all();
  if (wanted("kernels"))
    for (const bench::KernelCase& kernel : bench::kernel_cases()) {
      const std::string name = kernel.kernel + ", " + kernel.where;
      if (!matches(name)) continue;
      progress.show("kernels: " + name);
      result.kernels.push_back(measure(kernel, limits, seconds / 10));
    }
  if (wanted("models"))
    for (const ModelCase& model : model_cases()) {
      if (!matches(model.name)) continue;
      progress.show("models: " + model.name);
      result.models.push_back(measure(model, limits, seconds));
    }
  require(a.match.empty() || !result.kernels.empty() || !result.models.empty(),
          "bench: --match {}: no kernel and no model that was asked for has this in its name", a.match);
  return result;
}

}  // namespace

int bench_suite(const BenchArguments& a) {
  const Baseline baseline(a.compare);
  const std::vector<std::string> warnings = bench::narrow_parts();
  for (const std::string& warning : warnings) std::cerr << "heed: warning: " << warning << "\n";
  SuiteResult result = run_suite(a);
  result.warnings = warnings;
  const Json json = suite_json(result);
  if (a.json) {
    baseline.print_json(json);
    return ok;
  }
  print_suite(result);
  baseline.print(json);
  return ok;
}

}  // namespace heed::cli
