// The tensors of a model in a safetensors file.
#pragma once

#include "heed/io/safetensors.h"
#include "heed/base/parameters.h"

namespace heed {

/// Tensors whose name begins so are training state, not weights; a model's loader skips them.
inline constexpr const char* state_prefix = "heed.";

/// Is this a position embedding, which can be interpolated: pos_embed, or of a stage pos_embedT?
bool is_position_embedding(const std::string& name);

/// How a model may differ from the one whose weights it takes.
struct WeightChanges {
  bool new_head = false;   ///< head.* keep the values they have where the file's have another shape or are missing
  bool positions = false;  ///< position embeddings of another square grid are interpolated (kernels/bicubic.h), the
                           ///< class token's row kept
};

/// Reads every tensor of the model, buffers included, from `file`. A tensor that is missing, surplus, misshapen or
/// not finite is an Error that names it, except where `changes` allows it; what other programs count beside running
/// statistics, *.num_batches_tracked, is read past. Nothing is changed if an Error is thrown.
template <class T>
void load_weights(const SafetensorsFile& file, Parameters<T>& parameters, const WeightChanges& changes = {});

/// Adds every tensor of the model to a file, in the order of its declaration. `parameters` must outlive the writing.
template <class T>
void add_weights(SafetensorsWriter& file, const Parameters<T>& parameters);

}  // namespace heed
