#include "run_metrics.h"

#include "src/apps/cli/shared/table.h"

#include "heed/io/json.h"
#include "heed/train/runs/data_record.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>

namespace heed::cli {

namespace {

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

void print_origins(std::ostream& out, const RunPaths& a, const RunPaths& b) {
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
    out << "the runs have the same settings and environment\n\n";
  else
    table.print(out), out << "\n";
}

/// A number in metrics.csv or gradients.csv.
struct RunNumber {
  const char* name;
  double value;
};

/// Metrics of a run by step and index of the metric, which is the order in which they are computed.
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

}  // namespace

std::string compare_runs(std::ostream& out, const RunPaths& a, const RunPaths& b, double tolerance) {
  const RunNumbers in_a = metrics_of(a), in_b = metrics_of(b);
  print_origins(out, a, b);
  Index compared = 0, step = 0;  // number of equal values, and step of the last of them
  for (const auto& [place, x] : in_a) {
    const auto found = in_b.find(place);
    if (found == in_b.end()) continue;
    const double y = found->second.value, difference = std::abs(x.value - y);
    if (difference > tolerance * std::max(std::abs(x.value), std::abs(y))) {
      out << fmt::format("metrics: step {}: {} is {} in A, {} in B, difference {:.2g}; equal values before it: {}\n",
                         place.first, x.name, x.value, y, difference, compared);
      if (place.first > step + 1) out << "metrics.csv lacks the steps between; train.log_steps = true records all\n";
      out << "to find the operation: run heed probe model --trace with the same weights on both computers, then heed "
             "diff on the results\n";
      return fmt::format("the metrics differ from step {} on; ", place.first);
    }
    ++compared, step = place.first;
  }
  out << (compared == 0 ? "metrics: no step is in both\n"
                        : fmt::format("metrics: all {} common values agree, up to step {}\n", compared, step));
  const auto steps = [](const RunNumbers& numbers) { return numbers.empty() ? 0 : numbers.rbegin()->first.first; };
  if (steps(in_a) == steps(in_b)) return "";
  out << fmt::format("the metrics of A end at step {}, those of B at step {}\n", steps(in_a), steps(in_b));
  return fmt::format("one run's metrics end at step {}; ", std::min(steps(in_a), steps(in_b)));
}

}  // namespace heed::cli
