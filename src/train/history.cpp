#include "heed/train/history.h"

#include "heed/base/suggest.h"
#include "heed/io/json.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
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

/// A line of metrics.csv; see MetricsRow.
struct Row {
  std::string kind;
  Index epoch = 0, step = 0;
  std::optional<double> loss, accuracy, lr, images_per_s;
};

Row row_of(const std::string& path, const std::string& line) {
  std::vector<std::string> fields = fields_of(line);
  fields.resize(std::max<std::size_t>(fields.size(), 7));  // empty ones at the end
  const auto epoch = finite(fields[1]), step = finite(fields[2]);
  require(epoch && step, "{}: a line is {}; expected kind,epoch,step,...", path, in_quotes(line));
  return {fields[0],         static_cast<Index>(*epoch), static_cast<Index>(*step), finite(fields[3]),
          finite(fields[4]), finite(fields[5]),          finite(fields[6])};
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
  RunHistory history;
  std::error_code none;
  if (!std::filesystem::exists(paths.metrics(), none)) return history;
  const std::string text = read_file(paths.metrics());
  std::istringstream lines(text.substr(0, text.rfind('\n') + 1));  // a last line without an end was cut off
  std::string line;
  std::getline(lines, line);  // the names of the columns
  while (std::getline(lines, line)) {
    const Row row = row_of(paths.metrics(), line);
    if (row.kind == "train")
      history.epochs.push_back({row.epoch, row.step, row.loss, row.accuracy, row.lr, row.images_per_s, {}, {}});
    if (row.kind == "valid" && !history.epochs.empty()) {
      history.epochs.back().validation_loss = row.loss;
      history.epochs.back().validation_accuracy = row.accuracy;
    }
    if (row.kind == "test") {
      history.finished = true;
      history.test_loss = row.loss;
      history.test_accuracy = row.accuracy;
    }
  }
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
