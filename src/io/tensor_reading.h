// Tensors of weight files on their way into a model.
#pragma once

#include "heed/base/parameters.h"
#include "heed/io/safetensors.h"

namespace heed {

/// The numbers of a tensor, which must be finite; those of a buffer may be integers (indices of landmarks, say).
template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec);

/// Returns true if `found` is the shape of the position embedding `wanted` on another grid, a square.
bool positions_fit(const Shape& found, const ParameterSpec& wanted);

/// Returns the position embedding on the grid of `wanted`, rows before the grid as they are: that of a whole model
/// bicubic, as timm has it, that of a stage bilinear, as SOFT's authors have it. With `antialias` bicubic weights are
/// those of PyTorch's interpolate with antialiasing.
template <class T>
Tensor<T> interpolated(const ParameterSpec& wanted, const Tensor<T>& positions, bool antialias);

/// Returns true if a tensor of a file is no weight of a model: training state, what other programs count beside running
/// statistics (*.num_batches_tracked), and tensors of pretraining alone: DINO's projection head, mask_token.
bool is_no_weight(const std::string& name);

/// Throws Error, which says how to remove it, if all names of a file have a wrapper's prefix.
void require_no_wrapper(const SafetensorsFile& file);

}  // namespace heed
