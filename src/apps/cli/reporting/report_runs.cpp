#include "report_parts.h"

#include "src/apps/cli/shared/table.h"

#include "heed/analysis/model_cost.h"
#include "heed/draw/line_style.h"

#include <algorithm>
#include <filesystem>
#include <functional>

namespace heed::cli {

namespace {

/// A curve over epochs, with its title. A report has the curves of heed compare and three more.
struct ReportCurve {
  CurveName curve;
  const char* title;
};
constexpr std::array<ReportCurve, 7> report_curves{{
    {curve_names[0], "Validation accuracy"},
    {curve_names[1], "Validation loss"},
    {curve_names[2], "Training loss"},
    {curve_names[3], "Training accuracy"},
    {{"lr", &EpochRecord::lr, false}, "Learning rate"},
    {{"gradient_norm", &EpochRecord::gradient_norm, false}, "Gradient norm"},
    {{"images_per_s", &EpochRecord::images_per_s, false}, "Examples per second"},
}};

/// Returns {"mean": [...], "sd": [...], "runs": [[...], ...]}: lists of one value per epoch, from 1.
Json arm_curve(const ComparedArm& arm, const CurveName& curve) {
  Json mean = Json::list(), deviation = Json::list(), runs = Json::list();
  for (const Sample& sample : samples_of(arm, curve)) {
    mean.push_back(mean_json(sample));
    deviation.push_back(sample.deviation());
  }
  for (const ComparedRun& run : arm.runs) {
    Json& values = runs.push_back(Json::list());
    for (const EpochRecord& record : run.history.epochs) values.push_back(record.*curve.value);
  }
  return Json::object({{"mean", mean}, {"sd", deviation}, {"runs", runs}});
}

/// Returns a list of {"key", "title", "share", "arms": [arm_curve]}, without curves that no run has.
Json curves_json(const std::vector<ComparedArm>& arms) {
  Json curves = Json::list();
  for (const auto& [curve, title] : report_curves) {
    const auto has = [&, value = curve.value](const EpochRecord& record) { return (record.*value).has_value(); };
    const bool any = std::ranges::any_of(arms, [&](const ComparedArm& arm) {
      return std::ranges::any_of(arm.runs,
                                 [&](const ComparedRun& run) { return std::ranges::any_of(run.history.epochs, has); });
    });
    if (!any) continue;
    Json& entry = curves.push_back(Json::object({{"key", curve.key}, {"title", title}, {"share", curve.share}}));
    Json& of_arms = entry["arms"] = Json::list();
    for (const ComparedArm& arm : arms) of_arms.push_back(arm_curve(arm, curve));
  }
  return curves;
}

/// Returns a step's position in units of epochs, which may differ in length; `epochs` must not be empty.
double in_epochs(const std::vector<EpochRecord>& epochs, Index step) {
  auto end = std::ranges::lower_bound(epochs, step, {}, &EpochRecord::step);
  if (end == epochs.end()) --end;
  const EpochRecord before = end == epochs.begin() ? EpochRecord{} : end[-1];
  return static_cast<double>(before.epoch) + static_cast<double>((step - before.step) * (end->epoch - before.epoch)) /
                                                 static_cast<double>(end->step - before.step);
}

/// Returns {"mean_of": K, "epoch": [...], "loss": [...], "lr": [...], "gradient_norm": [...]}. Each point is the mean
/// of K steps or, for the last point, of those that remain; K is the smallest number that gives at most 400 points.
/// "epoch" is the position of a point's last step, in epochs. Null if no steps are logged or no epoch is complete.
Json steps_json(const RunHistory& history) {
  constexpr std::size_t most = 400;
  const std::vector<StepRecord>& steps = history.steps;
  if (steps.empty() || history.epochs.empty()) return {};
  const std::size_t bucket = (steps.size() + most - 1) / most;
  Json json = Json::object({{"mean_of", bucket}});
  for (std::size_t first = 0; first < steps.size(); first += bucket) {
    const std::span part(steps.data() + first, std::min(bucket, steps.size() - first));
    json["epoch"].push_back(in_epochs(history.epochs, part.back().step));
    const auto add = [&](const char* key, std::optional<double> StepRecord::*value) {
      std::vector<double> values;
      for (const StepRecord& step : part)
        if (step.*value) values.push_back(*(step.*value));
      json[key].push_back(mean_json(sample_of(values)));
    };
    add("loss", &StepRecord::loss);
    add("lr", &StepRecord::lr);
    add("gradient_norm", &StepRecord::gradient_norm);
  }
  return json;
}

/// Returns take(JSON of the file), or null if the run has no such file.
template <class Take>
Json from_file(const std::string& path, const Take& take) {
  return std::filesystem::exists(path) ? take_json(path, take) : Json();
}

/// Returns the run's init.json, with the tensors replaced by the number of tensors of each status; null if it is
/// missing.
Json init_of_run(const RunPaths& paths) {
  return from_file(paths.init(), [](Json init) {
    std::map<std::string, Index> count;
    for (const auto& [name, tensor] : init.at("tensors").entries()) ++count[tensor.at("status").text()];
    Json& tensors = init["tensors"] = Json::object();
    for (const auto& [status, number] : count) tensors[status] = number;
    return init;
  });
}

}  // namespace

Json runs_json(const std::vector<ComparedArm>& arms) {
  Json json = compared_json(arms);
  Table runs, names;
  runs.data({"directory", "arm", "seed", "config", "environment", "init", "steps"});
  for (std::size_t i = 0; i < arms.size(); ++i)
    for (const ComparedRun& run : arms[i].runs) {
      const RunPaths paths(run.directory);
      runs.add({run.directory, i, run.seed(), read_file(paths.config()),
                from_file(paths.environment(), std::identity()), init_of_run(paths), steps_json(run.history)});
    }
  names.data({"key", "title", "share", "decimals"});
  for (const FigureName& figure : figure_names)
    names.add({figure.key, figure.title ? Json(figure.title) : Json(), figure.share, figure.decimals});
  json["figure_names"] = names.json();
  std::vector<std::string> arm_names;
  for (const ComparedArm& arm : arms) arm_names.push_back(arm.name);
  Table styles;  // line styles of the arms
  styles.data({"colour", "marker", "dashes"});
  for (const auto& [colour, dashes] : line_styles(arm_names))
    styles.add({colour, line_markers[colour].path, line_dashes[dashes]});
  json["styles"] = styles.json();
  json["curves"] = curves_json(arms);
  json["runs"] = runs.json();
  return json;
}

Json cost_of_run(const RunPaths& paths) {
  return from_file(paths.cost(), [](Json cost) {
    for (const char* convention : {"contractions", "all"}) {
      Json layers = Json::list();
      for (Json layer : cost.at(convention).at("layers").items()) {
        layer["block"] = BlockName(layer.at("name").text()).number;
        layers.push_back(std::move(layer));
      }
      cost[convention]["layers"] = std::move(layers);
    }
    return cost;
  });
}

}  // namespace heed::cli
