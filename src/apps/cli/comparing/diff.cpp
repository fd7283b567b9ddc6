// heed diff: first and largest differences between two runs, checkpoints or tensor files.
#include "tensor_files.h"
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/subnormals.h"
#include "heed/io/json.h"
#include "heed/train/runs/data_record.h"
#include "heed/train/runs/history.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <iostream>
#include <map>

namespace heed::cli {

namespace {

struct DiffArguments {
  std::string a, b;
  double tolerance = 0;
  bool common = false;
};

/// Returns the file of tensors to compare: for a run, its last checkpoint.
std::string tensors_of(const std::string& path) {
  if (!std::filesystem::is_directory(path)) return path;
  const RunPaths paths(path);
  require(std::filesystem::exists(paths.last()),
          "{}: {} is missing; expected a run of heed train, or a safetensors file", path,
          std::filesystem::path(paths.last()).filename().string());
  return paths.last();
}

using Settings = std::map<std::string, std::string>;

/// Returns the settings and the environment that determine a run's results bit by bit. The date and the number of
/// threads are not among them.
Settings origin_of(const RunPaths& paths) {
  Settings settings = settings_of(result_settings(load_recorded(paths.config())));
  if (!std::filesystem::exists(paths.environment())) return settings;
  take_json(paths.environment(), [&](const Json& json) {
    for (const auto& [key, value] : json.entries())
      if (key != "date" && !key.starts_with("threads")) settings["environment." + key] = value.text();
    return true;
  });
  return settings;
}

void print_origins(const RunPaths& a, const RunPaths& b) {
  Settings in_a = origin_of(a), in_b = origin_of(b);
  const std::optional<DataRecord> data_a = read_data_record(a), data_b = read_data_record(b);
  if (data_a && data_b && !data_difference(*data_a, *data_b).empty())
    in_a["data"] = data_a->path, in_b["data"] = data_text(*data_b, *data_a);
  Settings all = in_a;
  all.insert(in_b.begin(), in_b.end());
  Table table;
  table.text("setting").text("A").text("B");
  const auto value = [](const Settings& of, const std::string& key) {
    const auto found = of.find(key);
    return found != of.end() ? Json(found->second) : Json();
  };
  for (const auto& [key, unused] : all)
    if (!in_a.contains(key) || !in_b.contains(key) || in_a.at(key) != in_b.at(key))
      table.add({key, value(in_a, key), value(in_b, key)});
  if (table.empty())
    std::cout << "the runs have the same settings and environment\n\n";
  else
    table.print(std::cout), std::cout << "\n";
}

/// A number in metrics.csv or gradients.csv.
struct RunNumber {
  const char* name;
  double value;
};

/// Metrics of a run by step and index of the metric. Within a step, metrics are computed in the order of their indices.
using RunNumbers = std::map<std::pair<Index, int>, RunNumber>;

RunNumbers metrics_of(const RunPaths& paths) {
  const RunHistory history = read_history(paths);
  RunNumbers numbers;
  const auto add = [&](Index step, int index, const char* name, const std::optional<double>& value) {
    if (value) numbers.emplace(std::pair{step, index}, RunNumber{name, *value});
  };
  for (const StepRecord& r : history.steps) {
    add(r.step, 0, "loss", r.loss);
    add(r.step, 1, "lr", r.lr);
    add(r.step, 2, "gradient norm", r.gradient_norm);
  }
  for (const EpochRecord& r : history.epochs) {
    add(r.step, 3, "the epoch's loss", r.loss);
    add(r.step, 4, "the epoch's accuracy", r.accuracy);
    add(r.step, 5, "the epoch's lr", r.lr);
    add(r.step, 6, "the epoch's gradient norm", r.gradient_norm);
    add(r.step, 7, "validation loss", r.validation_loss);
    add(r.step, 8, "validation accuracy", r.validation_accuracy);
  }
  const Index last = history.epochs.empty() ? 0 : history.epochs.back().step;
  add(last, 9, "test loss", history.test_loss);
  add(last, 10, "test accuracy", history.test_accuracy);
  return numbers;
}

/// Prints the differing settings and environments, and the first step at which the metrics differ. Returns a clause
/// about the difference, such as "the metrics differ from step 1 on; ". Empty if the common metrics are equal within
/// the tolerance and both runs' metrics end at the same step.
std::string compare_runs(const RunPaths& a, const RunPaths& b, double tolerance) {
  const RunNumbers in_a = metrics_of(a), in_b = metrics_of(b);
  print_origins(a, b);
  Index compared = 0, step = 0;  // number of values that agree, and step of the last of them
  for (const auto& [place, x] : in_a) {
    const auto found = in_b.find(place);
    if (found == in_b.end()) continue;
    const double y = found->second.value, difference = std::abs(x.value - y);
    if (difference > tolerance * std::max(std::abs(x.value), std::abs(y))) {
      std::cout << fmt::format(
          "metrics: step {}: {} is {} in A, {} in B, difference {:.2g}; equal values before it: {}\n", place.first,
          x.name, x.value, y, difference, compared);
      if (place.first > step + 1)
        std::cout << "metrics.csv lacks steps before this one; train.log_steps = true records every step\n";
      std::cout
          << "to find the operation: run heed probe model --trace with the same weights on both computers, then heed "
             "diff on the results\n";
      return fmt::format("the metrics differ from step {} on; ", place.first);
    }
    ++compared, step = place.first;
  }
  std::cout << (compared == 0 ? "metrics: no step is in both\n"
                              : fmt::format("metrics: all {} common values agree, up to step {}\n", compared, step));
  const auto steps = [](const RunNumbers& numbers) { return numbers.empty() ? 0 : numbers.rbegin()->first.first; };
  if (steps(in_a) == steps(in_b)) return "";
  std::cout << fmt::format("the metrics of A end at step {}, those of B at step {}\n", steps(in_a), steps(in_b));
  return fmt::format("one run's metrics end at step {}; ", std::min(steps(in_a), steps(in_b)));
}

int diff_command(const DiffArguments& of) {
  flush_subnormals(false);  // subnormals in other programs' files must not be read as zeros
  const SafetensorsFile a(tensors_of(of.a)), b(tensors_of(of.b));
  const FilesDifference found = compare_files(a, b, of.tolerance);
  std::string parted;  // clauses about differences of the metrics and of the tensors' steps
  if (std::filesystem::is_directory(of.a) && std::filesystem::is_directory(of.b))
    parted = compare_runs(RunPaths(of.a), RunPaths(of.b), of.tolerance);
  const std::string step_a = step_of(a), step_b = step_of(b);
  std::cout << fmt::format("A  {}{}\nB  {}{}\n\n", a.path(), step_a, b.path(), step_b);
  const bool same_step = step_a == step_b || step_a.empty() || step_b.empty();
  if (!same_step) parted += "the tensors are from different steps; ";
  const std::string summary = print_difference(std::cout, found, a, b, of.tolerance);
  const bool equal = found.equal(of.common) && parted.empty();
  std::cout << fmt::format("\n{}: {}{}\n", equal ? "equal" : "different", parted, summary);
  return equal ? ok : check_failed;
}

constexpr const char* diff_help =
    "A and B are runs, whose last checkpoints are compared, or safetensors files: checkpoints, results of heed probe, "
    "or tensors dumped by another program. For two runs, their settings, data files and metrics are compared, too.\n\n"
    "Tensors are compared in the order of A's data, which is the order of computation in files written by heed; if "
    "only B is a trace of heed probe, in the order of B's data. The relative difference of two elements is |a - b| / "
    "max(|a|, |b|, 1e-3 of the tensor's largest element), in double; ulps are units in the last place of the coarser "
    "of the two number types. The first tensor that differs by more than rounding is described as by heed gradcheck, "
    "with A taken as correct.\n\n"
    "Exit status: 0 equal within the tolerance, 1 different, 2 bad input.\n\n"
    "  heed diff runs/one runs/another --tolerance 1e-6";

}  // namespace

void add_diff(Command program) {
  static DiffArguments a;
  Command command =
      program.command("diff", "Find the first difference between two runs or files of tensors, and its size");
  command.option("A", &a.a, "a run's directory or a safetensors file", {.required = true});
  command.option("B", &a.b, "compared with A: a run's directory or a safetensors file", {.required = true});
  command.option("--tolerance", &a.tolerance, "largest relative difference that counts as equal; default: 0",
                 {.value = "X", .range = {{0, 1e9}}});
  command.option("--common", &a.common, "ignore tensors that exist in one file only or differ in shape");
  command.footer(diff_help);
  command.action([] { return diff_command(a); });
}

}  // namespace heed::cli
