// Tensors of weight files on their way into a model.
#pragma once

#include "heed/base/parameters.h"
#include "heed/io/safetensors.h"

namespace heed {

/// The numbers of a tensor, which must be finite; those of a buffer may be integers (indices of landmarks, say).
template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec);

/// Returns true for two position embeddings of square grids, with or without a class token's row, of equal width.
bool positions_fit(const Shape& found, const Shape& wanted);

/// The position embedding `name` on the grid of `shape`, the class token's row as it is: that of a whole model bicubic,
/// as timm has it, that of a stage bilinear, as SOFT's authors have it.
template <class T>
Tensor<T> interpolated(const std::string& name, const Tensor<T>& positions, const Shape& shape);

/// Returns true if a tensor of a file is no weight: training state, or what other programs count beside running
/// statistics,
/// *.num_batches_tracked.
bool is_no_weight(const std::string& name);

/// Throws Error, which says how to remove it, if all names of a file have a wrapper's prefix.
void require_no_wrapper(const SafetensorsFile& file);

}  // namespace heed
