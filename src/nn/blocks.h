// The blocks of a model as [model] and [attention] describe them.
#pragma once

#include "heed/nn/block.h"

namespace heed {

/// What blocks know beside [model] and [attention].
struct BlocksSetting {
  AttentionShape shape;
  double dropout = 0, drop_path = 0;
  bool causal = false;  ///< every mechanism must be, and is so by itself
};

/// Declares the tensors blocks.0.*, blocks.1.*, ... Throws Error at an unknown mechanism, at options that no block's
/// mechanism has, and where a mechanism cannot work on the shape.
std::vector<Block> make_blocks(ParameterList& list, const ModelConfig& model, const AttentionConfig& attention,
                               const BlocksSetting& setting);

/// Throws Error if a model and its attention are none in the sense of validate().
void check_model(const ModelConfig& model, const AttentionConfig& attention);

/// The options that a block's mechanism is given.
OptionValues options_of_block(const AttentionConfig& attention, Index block);

/// What the blocks' mechanisms add to the training loss, a scalar; none for most.
template <class T>
Var<T> sum_of_penalties(const std::vector<Block>& blocks, Tape<T>& tape) {
  Var<T> total;
  for (const Block& block : blocks)
    if (const Var<T> term = block.penalty(tape)) total = total ? add(total, term) : term;
  return total;
}

}  // namespace heed
