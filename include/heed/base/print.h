// Printing of tensors: std::cout << tensor.
#pragma once

#include "heed/base/tensor.h"

#include <functional>
#include <iosfwd>

namespace heed {

namespace detail {
/// Writes value(i) for each element i.
void print_values(std::ostream& out, const Shape& shape, const std::function<double(Index)>& value);
}  // namespace detail

/// Writes the values in nested brackets, rounded to four significant digits, with the shape:
///
///   [[ 0.5, -1.25],
///    [1000,     0]]  shape [2, 2]
///
/// Axes of more than eight elements are abbreviated to their first and last three.
template <class T>
std::ostream& operator<<(std::ostream& out, const View<T>& view) {
  detail::print_values(out, view.shape(), [&](Index i) { return static_cast<double>(view[i]); });
  return out;
}

/// Writes a tensor like its view.
template <class T>
std::ostream& operator<<(std::ostream& out, const Tensor<T>& tensor) {
  return out << tensor.view();
}

}  // namespace heed
