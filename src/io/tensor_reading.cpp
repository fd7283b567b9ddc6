#include "tensor_reading.h"

#include "heed/base/printable.h"
#include "heed/io/upstream_weights.h"
#include "heed/io/weights.h"
#include "heed/kernels/grids/bicubic.h"

#include <cmath>

namespace heed {

template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec) {
  if (spec.trainable || file.info(spec.name).dtype != DType::I64) {
    Tensor<T> numbers = file.read<T>(spec.name);
    require_finite<T>(file.path(), spec.name, numbers.view());
    if (spec.nonnegative)
      for (const T x : numbers)
        require(x >= 0, "{}: tensor '{}' contains {}; expected variances of 0 or more", file.path(), spec.name, x);
    return numbers;
  }
  const Tensor<std::int64_t> integers = file.read<std::int64_t>(spec.name);
  Tensor<T> numbers(integers.shape());
  std::transform(integers.begin(), integers.end(), numbers.begin(), [](std::int64_t i) { return static_cast<T>(i); });
  return numbers;
}

namespace {

constexpr std::string_view whole_positions = "pos_embed";

}  // namespace

bool is_no_weight(const std::string& name) {
  return name.starts_with(state_prefix) || name.ends_with(".num_batches_tracked") || name == "mask_token" ||
         name.starts_with("head.mlp.") || name.starts_with("head.last_layer.");
}

PositionRows other_positions(const Shape& found, const ParameterSpec& wanted, const PositionRows& from) {
  const Index front = wanted.positions.front;
  if (wanted.positions.height == 0 || found.rank() != 3 || found[0] != 1 || found[2] != wanted.shape[2]) return {};
  const Index cells = found[1] - front;
  if (from.height > 0 && from.front == front && from.height * from.width == cells)
    return from == wanted.positions ? PositionRows{} : from;
  if (found == wanted.shape) return {};
  const Index side = cells > 0 ? std::lround(std::sqrt(static_cast<double>(cells))) : 0;
  return side * side == cells ? PositionRows{front, side, side} : PositionRows{};
}

template <class T>
Tensor<T> interpolated(const ParameterSpec& wanted, const Tensor<T>& positions, const PositionRows& from,
                       bool antialias) {
  const auto [front, height, columns] = wanted.positions;
  const Index width = wanted.shape[2];
  Tensor<T> result(wanted.shape);
  std::copy_n(positions.data(), front * width, result.data());
  const kernels::Grid theirs{from.height, from.width}, grid{height, columns};
  const Matrix<const T> x(positions.data() + front * width, from.height * from.width, width);
  const Matrix<T> y(result.data() + front * width, height * columns, width);
  if (wanted.name != whole_positions)
    kernels::bilinear<T>(theirs, x, grid, y);
  else if (antialias)
    kernels::bicubic_antialiased<T>(theirs, x, grid, y);
  else
    kernels::bicubic<T>(theirs, x, grid, y);
  return result;
}

template Tensor<float> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<double> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<float> interpolated(const ParameterSpec&, const Tensor<float>&, const PositionRows&, bool);
template Tensor<double> interpolated(const ParameterSpec&, const Tensor<double>&, const PositionRows&, bool);

void require_own_names(const SafetensorsFile& file) {
  const std::vector<std::string>& names = file.names();
  require(std::none_of(names.begin(), names.end(), is_hugging_face_name),
          "{}: has names of Hugging Face's transformers; `heed convert hf-vit {} OUT` converts them (hf-deit for DeiT, "
          "hf-dinov2 for DINOv2)",
          file.path(), shell_word(file.path()));
  const std::string prefix = wrapper_prefix(file);
  require(
      prefix.empty(),
      "{}: all tensor names begin with '{}', the prefix of a wrapper of the model; `heed convert {} OUT` removes it",
      file.path(), prefix, shell_word(file.path()));
}

}  // namespace heed
