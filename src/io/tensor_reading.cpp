#include "tensor_reading.h"

#include "heed/kernels/bicubic.h"

#include <cmath>

namespace heed {

template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec) {
  if (spec.trainable || file.info(spec.name).dtype != DType::I64) {
    Tensor<T> numbers = file.read<T>(spec.name);
    require_finite(file.path(), spec.name, std::as_const(numbers).view());
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

}  // namespace

bool positions_fit(const Shape& found, const Shape& wanted, Index skip) {
  return grid_side(found, skip) > 0 && grid_side(wanted, skip) > 0 && found[2] == wanted[2];
}

template <class T>
Tensor<T> interpolated(const Tensor<T>& positions, const Shape& shape, Index skip) {
  const Index from = grid_side(positions.shape(), skip), to = grid_side(shape, skip), width = shape[2];
  Tensor<T> result(shape);
  std::copy_n(positions.data(), skip * width, result.data());
  const auto grid_of = [=](auto* rows, Index side) { return Matrix(rows + skip * width, side * side, width); };
  kernels::bicubic({from, from}, grid_of(positions.data(), from), {to, to}, grid_of(result.data(), to));
  return result;
}

template Tensor<float> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<double> read_numbers(const SafetensorsFile&, const ParameterSpec&);
template Tensor<float> interpolated(const Tensor<float>&, const Shape&, Index);
template Tensor<double> interpolated(const Tensor<double>&, const Shape&, Index);

}  // namespace heed
