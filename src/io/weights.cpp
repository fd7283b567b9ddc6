#include "heed/io/weights.h"

#include "heed/kernels/bicubic.h"
#include "heed/base/suggest.h"

#include <cmath>

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

constexpr std::string_view whole_positions = "pos_embed";

/// Side of the square grid whose rows `shape` [1, N, D] holds after `skip` others; 0 if it is not such a shape.
Index grid_side(const Shape& shape, Index skip) {
  if (shape.rank() != 3 || shape[0] != 1 || shape[1] <= skip) return 0;
  const auto side = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(shape[1] - skip))));
  return side * side == shape[1] - skip ? side : 0;
}

/// Rows of a position embedding that are not on its square grid: a class token's. (No square is one more than another.)
Index rows_in_front(const Shape& shape) { return grid_side(shape, 0) > 0 ? 0 : 1; }

/// Are both position embeddings of square grids, and as wide?
bool positions_fit(const Shape& found, const Shape& wanted) {
  const Index skip = rows_in_front(wanted);
  return grid_side(found, skip) > 0 && grid_side(wanted, skip) > 0 && found[2] == wanted[2];
}

/// The position embedding on the grid of `shape`, the class token's row as it is: that of a whole model bicubic, as
/// timm has it, that of a stage bilinear, as SOFT's authors have it.
template <class T>
Tensor<T> interpolated(const std::string& name, const Tensor<T>& positions, const Shape& shape) {
  const Index skip = rows_in_front(shape), width = shape[2];
  const Index from = grid_side(positions.shape(), skip), to = grid_side(shape, skip);
  Tensor<T> result(shape);
  std::copy_n(positions.data(), skip * width, result.data());
  const auto grid_of = [=](auto* rows, Index side) { return Matrix(rows + skip * width, side * side, width); };
  const auto interpolate = name == whole_positions ? kernels::bicubic<T> : kernels::bilinear<T>;
  interpolate({from, from}, grid_of(positions.data(), from), {to, to}, grid_of(result.data(), to));
  return result;
}

}  // namespace

bool is_position_embedding(const std::string& name) {
  return name.starts_with(whole_positions) && name.find_first_not_of("0123456789", whole_positions.size()) == name.npos;
}

template <class T>
void load_weights(const SafetensorsFile& file, Parameters<T>& parameters, const WeightChanges& changes) {
  const ParameterList& list = parameters.list();
  std::vector<std::string> missing, surplus;
  std::vector<ParameterId> present;
  for (ParameterId id = 0; id < list.size(); ++id) {
    if (list[id].prepared) continue;
    const std::string& name = list[id].name;
    const bool optional = changes.new_head && belongs_to_head(name);
    if (!file.contains(name)) {
      if (!optional) missing.push_back(name);
      continue;
    }
    const Shape& found = file.info(name).shape;
    const bool fits = found == list[id].shape ||
                      (changes.positions && is_position_embedding(name) && positions_fit(found, list[id].shape));
    if (!fits) {
      const bool head = belongs_to_head(name);
      require(optional, "{}: tensor '{}' has shape {}; the model's has {}{}", file.path(), name, to_string(found),
              to_string(list[id].shape), head ? "; --set train.init_head=true trains a new head" : "");
      continue;
    }
    present.push_back(id);
  }
  for (const std::string& name : file.names())
    if (list.find(name) < 0 && !name.starts_with(state_prefix) && !name.ends_with(".num_batches_tracked"))
      surplus.push_back(name);
  require(missing.empty(), "{}: the model has tensors that the file lacks: {}", file.path(), quoted_list(missing));
  require(surplus.empty(), "{}: the file has tensors that the model lacks: {}", file.path(), quoted_list(surplus));

  file.check();
  std::vector<Tensor<T>> values;
  for (const ParameterId id : present) {
    values.push_back(read_numbers<T>(file, list[id]));
    require_finite(file.path(), list[id].name, std::as_const(values.back()).view());
    if (!(values.back().shape() == list[id].shape))
      values.back() = interpolated(list[id].name, values.back(), list[id].shape);
  }
  for (std::size_t i = 0; i < present.size(); ++i)
    std::copy(values[i].begin(), values[i].end(), parameters[present[i]].begin());
}

template <class T>
void add_weights(SafetensorsWriter& file, const Parameters<T>& parameters) {
  for (ParameterId id = 0; id < parameters.list().size(); ++id)
    if (!parameters.list()[id].prepared) file.add(parameters.list()[id].name, parameters[id]);
}

template void load_weights(const SafetensorsFile&, Parameters<float>&, const WeightChanges&);
template void load_weights(const SafetensorsFile&, Parameters<double>&, const WeightChanges&);
template void add_weights(SafetensorsWriter&, const Parameters<float>&);
template void add_weights(SafetensorsWriter&, const Parameters<double>&);

}  // namespace heed
