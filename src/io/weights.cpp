#include "heed/io/weights.h"

#include "tensor_reading.h"
#include "heed/base/suggest.h"

namespace heed {

namespace {

bool belongs_to_head(const std::string& name) { return name.starts_with("head.") || name.starts_with("head_dist."); }

constexpr const char* new_head_cure = "; for a new head, add --set train.init_head=true";

/// Returns the remedy for a tensor whose shape differs from the model's.
std::string cure_of(const std::string& name, bool other_grid, const WeightChanges& changes) {
  if (belongs_to_head(name)) return new_head_cure;
  return other_grid ? changes.positions_cure : changes.cure;
}

}  // namespace

template <class T>
TakenWeights load_weights(const SafetensorsFile& file, Parameters<T>& parameters, const WeightChanges& changes) {
  using Status = TakenTensor::Status;
  const ParameterList& list = parameters.list();
  std::vector<std::string> missing;
  TakenWeights taken;
  std::vector<std::pair<ParameterId, PositionRows>> present;  // tensors to load, with the file's grid if interpolated
  for (ParameterId id = 0; id < list.size(); ++id) {
    if (list[id].prepared || list[id].training_only) continue;
    const std::string& name = list[id].name;
    const Shape& wanted = list[id].shape;
    TakenTensor& tensor = taken.tensors.emplace_back(TakenTensor{.name = name, .of = wanted[0]});
    const bool optional = changes.new_head && belongs_to_head(name);
    if (!file.contains(name)) {
      if (!optional) missing.push_back(name);
      tensor.reason = "not in the file";
      continue;
    }
    const Shape& found = file.info(name).shape;
    const PositionRows theirs = other_positions(found, list[id], changes.from);
    const bool other_grid = theirs.height > 0, interpolates = changes.positions && other_grid;
    if ((found == wanted && !other_grid) || interpolates) {
      tensor.status = interpolates ? Status::interpolated : Status::loaded;
      tensor.rows = wanted[0];
      taken.numbers += wanted.elements();
      present.emplace_back(id, interpolates ? theirs : PositionRows{});
      continue;
    }
    tensor.reason = fmt::format("shape {} in the file, {} in the model", found, wanted);
    require(found != wanted, "{}: tensor '{}' is for a grid of {} x {} patches; the model has {} x {}{}", file.path(),
            name, theirs.height, theirs.width, list[id].positions.height, list[id].positions.width,
            changes.positions_cure);
    require(optional, "{}: tensor '{}' has shape {}; the model expects {}{}", file.path(), name, found, wanted,
            cure_of(name, other_grid, changes));
  }
  for (const std::string& name : file.names())
    if (list.find(name) < 0 && !is_no_weight(name)) taken.unused.push_back(name);
  if (!missing.empty()) require_own_names(file);
  require(missing.empty(), "{}: tensors of the model are missing from the file: {}{}", file.path(),
          quoted_list(missing),
          std::all_of(missing.begin(), missing.end(), belongs_to_head) ? new_head_cure : changes.cure.c_str());
  require(taken.unused.empty(), "{}: tensors of the file are missing from the model: {}{}", file.path(),
          quoted_list(taken.unused), changes.cure);

  file.check();
  std::vector<Tensor<T>> values;
  for (const auto& [id, rows] : present) {
    values.push_back(read_numbers<T>(file, list[id]));
    if (rows.height > 0) values.back() = interpolated(list[id], values.back(), rows, changes.antialias);
  }
  for (std::size_t i = 0; i < present.size(); ++i)
    std::copy(values[i].begin(), values[i].end(), parameters[present[i].first].begin());
  return taken;
}

template <class T>
void add_weights(SafetensorsWriter& file, const Parameters<T>& parameters) {
  for (ParameterId id = 0; id < parameters.list().size(); ++id)
    if (!parameters.list()[id].prepared && !parameters.list()[id].training_only)
      file.add(parameters.list()[id].name, parameters[id]);
}

template TakenWeights load_weights(const SafetensorsFile&, Parameters<float>&, const WeightChanges&);
template TakenWeights load_weights(const SafetensorsFile&, Parameters<double>&, const WeightChanges&);
template void add_weights(SafetensorsWriter&, const Parameters<float>&);
template void add_weights(SafetensorsWriter&, const Parameters<double>&);

}  // namespace heed
