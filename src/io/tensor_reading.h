// Tensors of weight files on their way into a model.
#pragma once

#include "heed/base/parameters.h"
#include "heed/io/safetensors.h"

namespace heed {

inline constexpr const char* position_name = "pos_embed";

/// The numbers of a tensor, which must be finite; those of a buffer may be integers (indices of landmarks, say).
template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec);

/// Are both position embeddings of square grids behind `skip` other rows, and as wide?
bool positions_fit(const Shape& found, const Shape& wanted, Index skip);

/// The position embedding on the grid of `shape`; the first `skip` rows, which are not on the grid, as they are.
template <class T>
Tensor<T> interpolated(const Tensor<T>& positions, const Shape& shape, Index skip);

}  // namespace heed
