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
        require(x >= 0, "{}: tensor '{}' holds {}; a variance is 0 or more", file.path(), spec.name, x);
    return numbers;
  }
  const Tensor<std::int64_t> integers = file.read<std::int64_t>(spec.name);
  Tensor<T> numbers(integers.shape());
  std::transform(integers.begin(), integers.end(), numbers.begin(), [](std::int64_t i) { return static_cast<T>(i); });
  return numbers;
}

namespace {

/// Side of the square grid whose rows `shape` [1, N, D] holds after `skip` others; 0 if it is not such a shape.
Index grid_side(const Shape& shape, Index skip) {
  if (shape.rank() != 3 || shape[0] != 1 || shape[1] <= skip) return 0;
  const auto side = static_cast<Index>(std::lround(std::sqrt(static_cast<double>(shape[1] - skip))));
  return side * side == shape[1] - skip ? side : 0;
}

/// Rows of a position embedding that are not on its square grid: a class token's. (No square is one more than another.)
Index rows_in_front(const Shape& shape) { return grid_side(shape, 0) > 0 ? 0 : 1; }

constexpr std::string_view whole_positions = "pos_embed";

}  // namespace

bool is_no_weight(const std::string& name) {
  return name.starts_with(state_prefix) || name.ends_with(".num_batches_tracked");
}

bool positions_fit(const Shape& found, const Shape& wanted) {
  const Index skip = rows_in_front(wanted);
  return grid_side(found, skip) > 0 && grid_side(wanted, skip) > 0 && found[2] == wanted[2];
}

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

template Tensor<float> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<double> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<float> interpolated(const std::string&, const Tensor<float>&, const Shape&);
template Tensor<double> interpolated(const std::string&, const Tensor<double>&, const Shape&);

void require_no_wrapper(const SafetensorsFile& file) {
  const std::string prefix = wrapper_prefix(file);
  require(
      prefix.empty(),
      "{}: all names of its tensors begin with '{}', which a wrapper of the model adds; `heed convert {} OUT` writes "
      "a file without",
      file.path(), prefix, file.path());
}

}  // namespace heed
