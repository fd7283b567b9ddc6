// Tensors from a file, checked when they are taken.
#pragma once

#include "heed/io/safetensors.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <type_traits>

namespace heed {

/// The tensors of a file. take() checks the tensor that it returns; finish() throws Error if a tensor was not taken.
class GivenTensors {
 public:
  explicit GivenTensors(const std::string& path) : file_(path) {}

  /// Returns true if the file has a tensor of another type than I64.
  bool has_numbers() const {
    return std::any_of(file_.names().begin(), file_.names().end(),
                       [&](const std::string& name) { return file_.info(name).dtype != DType::I64; });
  }

  /// Returns true if all tensors except I64 ones are F64, false if they are F32. Throws Error for other types, for a
  /// mixture, or if there are none.
  bool in_double() const {
    const std::string* first = nullptr;
    DType common{};
    for (const std::string& name : file_.names()) {
      const DType dtype = file_.info(name).dtype;
      if (dtype == DType::I64) continue;
      require(dtype == DType::F32 || dtype == DType::F64, "{}: tensor '{}' is {}; expected F32 or F64", file_.path(),
              name, to_string(dtype));
      if (first)
        require(dtype == common, "{}: tensor '{}' is {}, '{}' is {}; expected one number type", file_.path(), name,
                to_string(dtype), *first, to_string(common));
      first = &name;
      common = dtype;
    }
    require(first != nullptr, "{}: has no F32 or F64 tensor", file_.path());
    return common == DType::F64;
  }

  bool contains(const std::string& name) const { return file_.contains(name); }
  const std::string& path() const { return file_.path(); }

  /// Returns the tensor `name`. Throws Error unless it has `rank` axes and at least one element, or if T is
  /// floating-point and the tensor has integers or non-finite values.
  template <class T>
  Tensor<T> take(const std::string& name, int rank) {
    const Shape& found = shape(name);
    require(found.rank() == rank, "{}: tensor '{}' has shape {}; expected {} axes", path(), name, to_string(found),
            rank);
    require(found.elements() > 0, "{}: tensor '{}' has shape {}; expected at least one element", path(), name,
            to_string(found));
    taken_.insert(name);
    if constexpr (std::is_floating_point_v<T>)
      require(file_.info(name).dtype != DType::I64, "{}: tensor '{}' is I64; expected F32 or F64", path(), name);
    Tensor<T> tensor = file_.read<T>(name);
    if constexpr (std::is_floating_point_v<T>) require_finite<T>(path(), name, tensor.view());
    return tensor;
  }

  /// Returns take(name, shape.rank()). Throws Error unless the tensor has this shape.
  template <class T>
  Tensor<T> take(const std::string& name, const Shape& shape) {
    require(this->shape(name) == shape, "{}: tensor '{}' has shape {}; expected {}", path(), name,
            to_string(this->shape(name)), to_string(shape));
    return take<T>(name, shape.rank());
  }

  /// Returns the tensor `name` of this shape, or a tensor without elements if the file lacks it.
  template <class T>
  Tensor<T> take_if_given(const std::string& name, const Shape& shape) {
    return contains(name) ? take<T>(name, shape) : Tensor<T>();
  }

  /// Returns the tensor `name` of this shape. Integers, such as indices of landmarks, are converted to T.
  template <class T>
  Tensor<T> take_buffer(const std::string& name, const Shape& shape) {
    if (!file_.contains(name) || file_.info(name).dtype != DType::I64) return take<T>(name, shape);
    const Tensor<std::int64_t> integers = take<std::int64_t>(name, shape);
    Tensor<T> numbers(shape);
    std::transform(integers.begin(), integers.end(), numbers.begin(), [](std::int64_t i) { return static_cast<T>(i); });
    return numbers;
  }

  /// Returns the shape of the tensor `name`.
  const Shape& shape(const std::string& name) const {
    require(file_.contains(name), "{}: tensor '{}' is missing", path(), name);
    return file_.info(name).shape;
  }

  /// Returns the shapes of all tensors, by name.
  std::map<std::string, Shape> shapes() const {
    std::map<std::string, Shape> shapes;
    for (const std::string& name : file_.names()) shapes[name] = file_.info(name).shape;
    return shapes;
  }

  void finish() const {
    for (const std::string& name : file_.names())
      require(taken_.contains(name), "{}: tensor '{}' is not used; expected {}", path(), name,
              fmt::format("{}", fmt::join(taken_, ", ")));
  }

 private:
  SafetensorsFile file_;
  std::set<std::string> taken_;
};

}  // namespace heed
