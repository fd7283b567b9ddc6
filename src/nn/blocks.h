// Construction of a model's blocks from [model] and [attention].
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/block.h"

namespace heed {

/// Returns an experiment with this model and attention, and defaults for everything else.
Experiment experiment_of(const ModelConfig& model, const AttentionConfig& attention);

/// Parameters of blocks besides [model] and [attention].
struct BlocksSetting {
  AttentionShape shape;
  double dropout = 0, drop_path = 0;
};

/// Creates the blocks and declares the tensors blocks.0.*, blocks.1.*, ... Throws Error for an unknown mechanism, for
/// options that no block's mechanism has, and for a shape that a mechanism does not support.
std::vector<Block> make_blocks(ParameterList& list, const ModelConfig& model, const AttentionConfig& attention,
                               const BlocksSetting& setting);

/// Returns true if causal = true is set for this mechanism.
bool is_causal(const AttentionConfig& attention, const std::string& mechanism);

/// Returns the same attention, causal in every block. Throws Error if a mechanism has no causal form or is set to
/// causal = false.
AttentionConfig made_causal(AttentionConfig attention);

}  // namespace heed
