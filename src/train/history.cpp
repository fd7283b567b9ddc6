#include "heed/train/history.h"

#include "heed/base/suggest.h"
#include "heed/io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <sstream>

namespace heed {

namespace {

/// The fields of a line between commas.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream stream(line);
  for (std::string field; std::getline(stream, field, ',');) fields.push_back(field);
  return fields;
}

/// A finite number, if it is one.
std::optional<double> finite(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  return whole && std::isfinite(value) ? std::optional(value) : std::nullopt;
}

/// A line of metrics.csv or gradients.csv; see MetricsRow.
struct Row {
  std::vector<std::string> columns, fields;
  std::string kind;
  Index epoch = 0, step = 0;

  /// Nothing where the file has no such column: earlier versions of heed had fewer.
  std::optional<double> number(const char* column) const {
    const auto place = static_cast<std::size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
    return place < std::min(columns.size(), fields.size()) ? finite(fields[place]) : std::nullopt;
  }
};

/// f(row) for each line below the first; for none of a file that does not exist.
void for_each_row(const std::string& path, const std::function<void(const Row&)>& f) {
  std::error_code none;
  if (!std::filesystem::exists(path, none)) return;
  const std::string text = read_file(path);
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));  // a last line without an end was cut off
  std::string line;
  std::getline(lines, line);
  Row row{fields_of(line), {}, "", 0, 0};
  while (std::getline(lines, line)) {
    row.fields = fields_of(line);
    const auto epoch = row.number("epoch"), step = row.number("step");
    require(epoch && step, "{}: a line is {}; expected kind,epoch,step,...", path, in_quotes(line));
    row.kind = row.fields[0], row.epoch = static_cast<Index>(*epoch), row.step = static_cast<Index>(*step);
    f(row);
  }
}

double parameters_in(const std::string& path) {
  try {
    return Json::parse(read_file(path)).at("contractions").at("params").number();
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

RunHistory read_history(const RunPaths& paths) {
  std::map<std::pair<std::string, Index>, std::optional<double>> norms;  // by kind and step
  for_each_row(paths.gradients(), [&](const Row& row) { norms[{row.kind, row.step}] = row.number("gradient_norm"); });
  RunHistory history;
  for_each_row(paths.metrics(), [&](const Row& row) {
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
  for (const EpochRecord& epoch : history.epochs) {
    // The first of the best: its weights are best.safetensors.
    if (epoch.validation_accuracy &&
        (!figures.validation_accuracy || *epoch.validation_accuracy > *figures.validation_accuracy)) {
      figures.validation_accuracy = epoch.validation_accuracy;
      figures.validation_loss = epoch.validation_loss;
    }
    const double images = static_cast<double>(epoch.step / epoch.epoch * batch);
    if (epoch.images_per_s && *epoch.images_per_s > 0) seconds.push_back(images / *epoch.images_per_s);
  }
  if (!seconds.empty()) figures.seconds_per_epoch = median(seconds);
  if (std::filesystem::exists(paths.cost())) figures.parameters = parameters_in(paths.cost());
  return figures;
}

}  // namespace heed
