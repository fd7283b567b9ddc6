#include "heed/io/weights.h"

#include "heed/suggest.h"

namespace heed {

namespace {

/// "'a', 'b' and 3 more"
std::string quoted_list(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

bool belongs_to_head(const std::string& name) { return name.starts_with("head."); }

/// The numbers of a tensor; those of a buffer may be integers (indices of landmarks, say).
template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec) {
  if (spec.trainable || file.info(spec.name).dtype != DType::I64) return file.read<T>(spec.name);
  const Tensor<std::int64_t> integers = file.read<std::int64_t>(spec.name);
  Tensor<T> numbers(integers.shape());
  std::transform(integers.begin(), integers.end(), numbers.begin(), [](std::int64_t i) { return static_cast<T>(i); });
  return numbers;
}

}  // namespace

template <class T>
void load_weights(const SafetensorsFile& file, Parameters<T>& parameters, bool new_head) {
  const ParameterList& list = parameters.list();
  std::vector<std::string> missing, surplus;
  std::vector<ParameterId> present;
  for (ParameterId id = 0; id < list.size(); ++id) {
    const std::string& name = list[id].name;
    const bool optional = new_head && belongs_to_head(name);
    if (!file.contains(name)) {
      if (!optional) missing.push_back(name);
      continue;
    }
    const Shape& found = file.info(name).shape;
    if (!(found == list[id].shape)) {
      const bool head = belongs_to_head(name);
      require(optional, "{}: tensor '{}' has shape {}; the model's has {}{}", file.path(), name, to_string(found),
              to_string(list[id].shape), head ? "; --set train.init_head=true trains a new head" : "");
      continue;
    }
    present.push_back(id);
  }
  for (const std::string& name : file.names())
    if (list.find(name) < 0 && !name.starts_with(state_prefix)) surplus.push_back(name);
  require(missing.empty(), "{}: the model has tensors that the file lacks: {}", file.path(), quoted_list(missing));
  require(surplus.empty(), "{}: the file has tensors that the model lacks: {}", file.path(), quoted_list(surplus));

  std::vector<Tensor<T>> values;
  for (const ParameterId id : present) {
    values.push_back(read_numbers<T>(file, list[id]));
    require_finite(file.path(), list[id].name, std::as_const(values.back()).view());
  }
  for (std::size_t i = 0; i < present.size(); ++i)
    std::copy(values[i].begin(), values[i].end(), parameters[present[i]].begin());
}

template <class T>
void add_weights(SafetensorsWriter& file, const Parameters<T>& parameters) {
  for (ParameterId id = 0; id < parameters.list().size(); ++id) file.add(parameters.list()[id].name, parameters[id]);
}

template void load_weights(const SafetensorsFile&, Parameters<float>&, bool);
template void load_weights(const SafetensorsFile&, Parameters<double>&, bool);
template void add_weights(SafetensorsWriter&, const Parameters<float>&);
template void add_weights(SafetensorsWriter&, const Parameters<double>&);

}  // namespace heed
