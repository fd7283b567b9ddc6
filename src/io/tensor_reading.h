// Reading of tensors from weight files.
#pragma once

#include "heed/base/parameters.h"
#include "heed/io/safetensors.h"

namespace heed {

/// Reads a tensor. Throws Error unless its elements are finite and, for variances, not negative. A buffer may also be
/// stored as I64 (for example, indices of landmarks).
template <class T>
Tensor<T> read_numbers(const SafetensorsFile& file, const ParameterSpec& spec);

/// Returns the rows of a file's position embedding of shape `found` if its grid differs from the grid of the model's
/// embedding, `wanted`; otherwise the height is 0. The file's rows are `from` if `from` has as many rows before and in
/// the grid. Otherwise, embeddings of equal shapes have the same grid, and other embeddings have a square grid. The
/// height is also 0 if `found` is not a position embedding of the same width or has no such grid.
PositionRows other_positions(const Shape& found, const ParameterSpec& wanted, const PositionRows& from);

/// Returns the position embedding `positions`, whose rows are `from`, interpolated to the grid of `wanted`; rows before
/// the grid are unchanged. Interpolation is bicubic for a whole model, as in timm, and bilinear for a stage, as in
/// SOFT's code. With `antialias`, the bicubic weights equal those of PyTorch's interpolate with antialiasing.
template <class T>
Tensor<T> interpolated(const ParameterSpec& wanted, const Tensor<T>& positions, const PositionRows& from,
                       bool antialias);

/// Returns true for a tensor that is not a weight of a model: training state, counters that other programs store with
/// running statistics (*.num_batches_tracked), and tensors of pretraining: DINO's projection head, mask_token.
bool is_no_weight(const std::string& name);

/// Throws Error, with the remedy, if names of a file are Hugging Face's, or if all names except a classifier's have a
/// wrapper's prefix.
void require_own_names(const SafetensorsFile& file);

}  // namespace heed
