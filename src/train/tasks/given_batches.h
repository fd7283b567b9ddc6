// Images, tokens and labels: those given by the caller, which are checked, and random ones.
#pragma once

#include "heed/base/random.h"
#include "heed/io/given_tensors.h"
#include "heed/nn/model.h"

namespace heed {

/// Returns the integer tensor `name`, [B, T] or [B], as ints. Elements for which `checked(b, t)` is true must be in
/// low..high; all others become 0.
template <class Checked>
Tensor<int> take_integers(GivenTensors& tensors, const std::string& name, const Shape& shape, Index low, Index high,
                          const Checked& checked) {
  const Tensor<std::int64_t> given = tensors.take<std::int64_t>(name, shape);
  Tensor<int> integers(shape);
  const Index width = shape.rank() == 2 ? shape[1] : 1;
  for (Index i = 0; i < given.size(); ++i) {
    if (!checked(i / width, i % width)) continue;
    require(given[i] >= low && given[i] <= high, "{}: tensor '{}' has value {} at element {}; expected {} to {}",
            tensors.path(), name, given[i], i, low, high);
    integers[i] = static_cast<int>(given[i]);
  }
  return integers;
}

/// Returns the integer tensor `name` as ints. All elements must be in low..high.
inline Tensor<int> take_integers(GivenTensors& tensors, const std::string& name, const Shape& shape, Index low,
                                 Index high) {
  return take_integers(tensors, name, shape, low, high, [](Index, Index) { return true; });
}

/// Returns the tensor 'images', [B, C, H, W], whose images must have the shape `image`, [C, H, W].
template <class T>
Tensor<T> take_images(GivenTensors& tensors, const Shape& image) {
  Tensor<T> images = tensors.take<T>("images", 4);
  const Shape expected{images.shape()[0], image[0], image[1], image[2]};
  require(images.shape() == expected, "{}: tensor 'images' has shape {}; expected {}", tensors.path(), images.shape(),
          expected);
  return images;
}

/// Returns normally distributed values.
template <class T>
Tensor<T> random_values(const Shape& shape) {
  Tensor<T> values(shape);
  for (Index i = 0; i < values.size(); ++i) values[i] = static_cast<T>(RandomStream(1).normal(i));
  return values;
}

/// Returns integers 0..n - 1, uniformly distributed.
inline Tensor<int> random_integers(const Shape& shape, Index n, const RandomStream& random) {
  Tensor<int> integers(shape);
  for (Index i = 0; i < integers.size(); ++i) integers[i] = static_cast<int>(random.below(i, n));
  return integers;
}

/// Returns the shape of the tensor `name`, [B, T] with 1 <= T <= context.
inline Shape token_shape(const GivenTensors& tensors, const std::string& name, Index context) {
  const Shape& shape = tensors.shape(name);
  require(shape.rank() == 2, "{}: tensor '{}' has shape {}; expected 2 axes", tensors.path(), name, shape);
  require(shape[1] <= context, "{}: tensor '{}' has shape {}; expected [B, T] with T at most context, {}",
          tensors.path(), name, shape, context);
  return shape;
}

}  // namespace heed
