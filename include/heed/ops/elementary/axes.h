// A list of axes.
#pragma once

#include "heed/base/tensor.h"

#include <span>

namespace heed {

/// Axes of a tensor, such as {0, -1}, or any array of int; negative axes count from the last. At most six.
class Axes {
 public:
  Axes(std::initializer_list<int> axes) : Axes(std::span(axes.begin(), axes.size())) {}
  Axes(std::span<const int> axes) : count_(axes.size()) {
    require(count_ <= axes_.size(), "[tensor] {} axes are given; at most {} are supported", count_, axes_.size());
    std::copy(axes.begin(), axes.end(), axes_.begin());
  }

  std::size_t size() const { return count_; }
  const int* begin() const { return axes_.data(); }
  const int* end() const { return axes_.data() + count_; }
  int operator[](std::size_t i) const { return axes_[i]; }

 private:
  std::array<int, Shape::max_rank> axes_{};
  std::size_t count_;
};

}  // namespace heed
