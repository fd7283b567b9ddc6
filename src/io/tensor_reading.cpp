#include "tensor_reading.h"

#include "heed/io/upstream_weights.h"
#include "heed/io/weights.h"
#include "heed/kernels/grids/bicubic.h"

#include <cmath>

namespace heed {

template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec) {
  if (spec.trainable || file.info(spec.name).dtype != DType::I64) {
    Tensor<T> numbers = file.read<T>(spec.name);
    require_finite(file.path(), spec.name, std::as_const(numbers).view());
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

/// Returns the side of the square grid that the rows of `shape` [1, N, D] form after the first `skip`; 0 if they form
/// none.
Index grid_side(const Shape& shape, Index skip) {
  if (shape.rank() != 3 || shape[0] != 1 || shape[1] <= skip) return 0;
  const auto side = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(shape[1] - skip))));
  return side * side == shape[1] - skip ? side : 0;
}

constexpr std::string_view whole_positions = "pos_embed";

}  // namespace

bool is_no_weight(const std::string& name) {
  return name.starts_with(state_prefix) || name.ends_with(".num_batches_tracked") || name == "mask_token" ||
         name.starts_with("head.mlp.") || name.starts_with("head.last_layer.");
}

bool positions_fit(const Shape& found, const ParameterSpec& wanted) {
  return wanted.positions.height > 0 && grid_side(found, wanted.positions.front) > 0 && found[2] == wanted.shape[2];
}

template <class T>
Tensor<T> interpolated(const ParameterSpec& wanted, const Tensor<T>& positions, bool antialias) {
  const auto [front, height, columns] = wanted.positions;
  const Index width = wanted.shape[2], from = grid_side(positions.shape(), front);
  Tensor<T> result(wanted.shape);
  std::copy_n(positions.data(), front * width, result.data());
  const kernels::Grid square{from, from}, grid{height, columns};
  const Matrix<const T> x(positions.data() + front * width, from * from, width);
  const Matrix<T> y(result.data() + front * width, height * columns, width);
  if (wanted.name != whole_positions)
    kernels::bilinear<T>(square, x, grid, y);
  else if (antialias)
    kernels::bicubic_antialiased<T>(square, x, grid, y);
  else
    kernels::bicubic<T>(square, x, grid, y);
  return result;
}

template Tensor<float> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<double> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<float> interpolated(const ParameterSpec&, const Tensor<float>&, bool);
template Tensor<double> interpolated(const ParameterSpec&, const Tensor<double>&, bool);

void require_no_wrapper(const SafetensorsFile& file) {
  const std::string prefix = wrapper_prefix(file);
  require(
      prefix.empty(),
      "{}: all tensor names begin with '{}', the prefix of a wrapper of the model; `heed convert {} OUT` removes it",
      file.path(), prefix, file.path());
}

}  // namespace heed
