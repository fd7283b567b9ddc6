// Tokens given by the caller, checked.
#pragma once

#include "heed/io/given_tensors.h"
#include "heed/nn/model.h"

namespace heed {

/// Returns the integer tensor `name`, [B, T] or [B], as ints. Elements for which `checked(b, t)` is true must be in
/// low..high.
template <class Checked>
Tensor<int> take_integers(GivenTensors& tensors, const std::string& name, const Shape& shape, Index low, Index high,
                          const Checked& checked) {
  const Tensor<std::int64_t> given = tensors.take<std::int64_t>(name, shape);
  Tensor<int> integers(shape);
  const Index width = shape.rank() == 2 ? shape[1] : 1;
  for (Index i = 0; i < given.size(); ++i) {
    if (!checked(i / width, i % width)) continue;
    require(given[i] >= low && given[i] <= high, "{}: tensor '{}' holds {} at element {}; expected {} to {}",
            tensors.path(), name, given[i], i, low, high);
    integers[i] = static_cast<int>(given[i]);
  }
  return integers;
}

/// Returns the shape of the tensor `name`, [B, T] with 1 <= T <= context.
inline Shape token_shape(const GivenTensors& tensors, const std::string& name, Index context) {
  const auto shapes = tensors.shapes();
  const auto found = shapes.find(name);
  require(found != shapes.end(), "{}: tensor '{}' is missing", tensors.path(), name);
  const Shape& shape = found->second;
  require(shape.rank() == 2, "{}: tensor '{}' has shape {}; expected 2 axes", tensors.path(), name, shape);
  require(shape[1] <= context, "{}: tensor '{}' has shape {}; expected [B, T] with T at most context, {}",
          tensors.path(), name, shape, context);
  return shape;
}

}  // namespace heed
