#include "heed/train/runs/history.h"

#include "table_rows.h"

#include "heed/io/json.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

namespace heed {

namespace {

/// Calls f(row) for each row of a file, if it exists.
void for_rows_if_any(const std::string& path, const std::function<void(const TableRow&)>& f) {
  std::error_code none;
  if (std::filesystem::exists(path, none)) for_each_row(path, "", f);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

RunHistory read_history(const RunPaths& paths) {
  std::map<std::pair<std::string, Index>, std::optional<double>> norms;  // by kind and step
  for_rows_if_any(paths.gradients(), [&](const TableRow& row) {
    norms[{row.kind, row.step}] = row.number("gradient_norm");
  });
  RunHistory history;
  for_rows_if_any(paths.metrics(), [&](const TableRow& row) {
    const std::optional<double> loss = row.number("loss"), accuracy = row.number("accuracy"), lr = row.number("lr");
    const auto norm = norms.find({row.kind, row.step});
    const std::optional<double> gradient_norm = norm != norms.end() ? norm->second : std::nullopt;
    if (row.kind == "step") history.steps.push_back({row.step, loss, lr, gradient_norm});
    if (row.kind == "train")
      history.epochs.push_back(
          {row.epoch, row.step, loss, accuracy, lr, gradient_norm, row.number("images_per_s"), {}, {}});
    if (row.kind == "valid" && !history.epochs.empty()) {
      history.epochs.back().validation_loss = loss;
      history.epochs.back().validation_accuracy = accuracy;
    }
    if (row.kind == "test") {
      history.finished = true;
      history.test_loss = loss;
      history.test_accuracy = accuracy;
    }
  });
  return history;
}

RunFigures read_figures(const RunPaths& paths, Index batch) {
  const RunHistory history = read_history(paths);
  RunFigures figures;
  if (!history.finished || history.epochs.empty()) return figures;
  figures.test_accuracy = history.test_accuracy;
  figures.test_loss = history.test_loss;
  figures.train_loss = history.epochs.back().loss;
  figures.epochs = static_cast<double>(history.epochs.size());
  std::vector<double> seconds;
  Index steps_before = 0;
  for (const EpochRecord& epoch : history.epochs) {
    // On ties, best.safetensors has the weights of the first best epoch.
    if (epoch.validation_accuracy &&
        (!figures.validation_accuracy || *epoch.validation_accuracy > *figures.validation_accuracy)) {
      figures.validation_accuracy = epoch.validation_accuracy;
      figures.validation_loss = epoch.validation_loss;
    }
    const double images = static_cast<double>(epoch.step - steps_before) * static_cast<double>(batch);
    steps_before = epoch.step;
    // Infinite if the rate is missing or, in a hand-edited file, too small.
    const double took = images / epoch.images_per_s.value_or(0);
    if (std::isfinite(took)) seconds.push_back(took);
  }
  if (!seconds.empty()) figures.seconds_per_epoch = median(seconds);
  if (std::filesystem::exists(paths.cost()))
    figures.parameters =
        take_json(paths.cost(), [](const Json& json) { return json.at("contractions").at("params").number(); });
  return figures;
}

}  // namespace heed
