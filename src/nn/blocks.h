// The blocks of a model as [model] and [attention] describe them.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/block.h"

namespace heed {

/// An experiment with this model, all else as it is by default.
Experiment experiment_of(const ModelConfig& model, const AttentionConfig& attention);

/// Parameters of blocks beside [model] and [attention].
struct BlocksSetting {
  AttentionShape shape;
  double dropout = 0, drop_path = 0;
};

/// Declares the tensors blocks.0.*, blocks.1.*, ... Throws Error at an unknown mechanism, at options that no block's
/// mechanism has, and where a mechanism cannot work on the shape.
std::vector<Block> make_blocks(ParameterList& list, const ModelConfig& model, const AttentionConfig& attention,
                               const BlocksSetting& setting);

/// Returns true if the mechanism of this name is set to be causal.
bool is_causal(const AttentionConfig& attention, const std::string& mechanism);

/// The same attention, causal in every block. Throws Error at a mechanism without a causal form, and at causal = false.
AttentionConfig made_causal(AttentionConfig attention);

}  // namespace heed
