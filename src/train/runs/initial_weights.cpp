#include "initial_weights.h"

#include "heed/attention/mechanism.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/model_of_tensors.h"
#include "heed/io/upstream_weights.h"
#include "heed/io/json.h"
#include "heed/train/runs/data_record.h"
#include "heed/train/runs/run.h"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace heed {

namespace {

std::string file_of(const std::string& source) {
  if (!std::filesystem::is_directory(source)) return source;
  require(RunPaths(source).exists(),
          "--init {}: not a run; expected a directory written by heed train, or a file of weights", source);
  return RunPaths(source).weights();
}

/// Returns the rows of a file's position embedding; their `height` is 0 unless the file is in the directory of a Vision
/// Transformer's run.
PositionRows rows_of(const std::string& file) {
  const RunPaths run(std::filesystem::absolute(file).parent_path());
  return run.exists() ? position_rows(run) : PositionRows{};
}

MatchingRules matching_rules(const Experiment& x, const std::string& file) {
  const std::unique_ptr<Mechanism> mechanism = make_mechanism(x.train.init_mechanism, {});
  const StageSizes& s = x.model.stages;
  std::vector<std::vector<RowPart>> divisions;
  if (!x.model.is_staged()) divisions.push_back(projection_parts(mechanism->layout(x.model.dim, x.model.heads)));
  for (std::size_t i = 0; i < s.dim.size(); ++i)
    divisions.push_back(projection_parts(mechanism->layout(s.dim[i], s.heads[i])));
  return {.positions = x.train.init_positions != "none",
          .antialias = x.train.init_positions == "antialias",
          .from = rows_of(file),
          .skip = x.train.init_skip,
          .parts = x.train.init_parts,
          .divisions = divisions};
}

/// Names of TakenTensor::Status in init.json.
constexpr const char* status_names[] = {"loaded", "part", "interpolated", "new"};

}  // namespace

template <class T>
InitialWeights take_initial_weights(const std::string& source, const Experiment& x, Parameters<T>& parameters) {
  const OpenedWeights opened = open_weights(file_of(source));
  const SafetensorsFile& file = opened.file;
  InitialWeights weights{file.path(), file.checksum(), {}};
  const std::string keys = fitting_keys(file, x.model);
  if (x.train.init == "matching")
    weights.taken = load_matching(file, parameters, matching_rules(x, file.path()));
  else
    weights.taken = load_weights(file, parameters,
                                 {.new_head = x.train.init_head,
                                  .positions = x.train.init_positions != "none",
                                  .from = rows_of(file.path()),
                                  .antialias = x.train.init_positions == "antialias",
                                  .cure = keys + "; to load only matching tensors, add --set train.init=matching",
                                  .positions_cure = "; to interpolate it, add --set train.init_positions=true"});
  weights.taken.prefix = opened.prefix;
  return weights;
}

void warn_of_other_classes(const InitialWeights& weights, const std::vector<std::string>& classes) {
  const bool classifies = std::ranges::any_of(weights.taken.tensors, [&](const TakenTensor& tensor) {
    return tensor.name.starts_with("head") && tensor.rows == std::ssize(classes);
  });
  const RunPaths run(std::filesystem::absolute(weights.file).parent_path());
  if (!classifies || !run.exists()) return;
  const std::optional<DataRecord> record = read_data_record(run);
  if (!record || record->recorded.classes.size() != classes.size()) return;
  const auto [theirs, own] = std::ranges::mismatch(record->recorded.classes, classes);
  if (own == classes.end()) return;
  warn(fmt::format(
      "{}: its classifier was trained on other classes: label {} is {}, in these data {}; for a new classifier, "
      "add --set train.init=matching --set 'train.init_skip=[\"head*\"]'",
      weights.file, own - classes.begin(), in_quotes(*theirs), in_quotes(*own)));
}

std::string init_json(const InitialWeights& weights, const TrainConfig& train) {
  Json json = Json::object({{"file", std::filesystem::absolute(weights.file).lexically_normal().string()},
                            {"crc32", weights.checksum},
                            {"init", train.init},
                            {"numbers", weights.taken.numbers}});
  Json& tensors = json["tensors"] = Json::object();
  for (const TakenTensor& tensor : weights.taken.tensors) {
    Json& entry = tensors[tensor.name] = Json::object(
        {{"status", status_names[static_cast<std::size_t>(tensor.status)]}, {"rows", tensor.rows}, {"of", tensor.of}});
    if (!tensor.reason.empty()) entry["reason"] = tensor.reason;
  }
  json["unused"] = weights.taken.unused;
  return json.dump(2) + "\n";
}

template InitialWeights take_initial_weights(const std::string&, const Experiment&, Parameters<float>&);
template InitialWeights take_initial_weights(const std::string&, const Experiment&, Parameters<double>&);

}  // namespace heed
