// Sequential execution of a model's blocks.
#pragma once

#include "heed/nn/attention.h"
#include "heed/nn/model.h"

namespace heed {

/// Returns f(x). If the pass recomputes, drops the intermediate results of f and recomputes them in the backward pass.
template <class T, class F>
Var<T> kept_or_recomputed(Var<T> x, const F& f) {
  Tape<T>& tape = x.tape();
  return tape.pass().execution.recompute ? tape.recompute(x, f) : f(x);
}

/// Runs x [B, N, D] through the blocks; `last` selects the tokens of the last block's output. `after(i, x)`, if given,
/// receives the output of block i.
template <class T, class Block, class After>
Var<T> run_blocks(const ModelPass<T>& pass, const std::vector<Block>& blocks, Var<T> x, Tokens last,
                  const After& after) {
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    const Tokens tokens = i + 1 == blocks.size() ? last : Tokens::all;
    x = kept_or_recomputed(x, [&block, tokens, visit = pass.visit](Var<T> z) { return block(z, tokens, visit); });
    after(i, x);
  }
  return x;
}
template <class T, class Block>
Var<T> run_blocks(const ModelPass<T>& pass, const std::vector<Block>& blocks, Var<T> x, Tokens last = Tokens::all) {
  return run_blocks(pass, blocks, x, last, [](std::size_t, Var<T>) {});
}

/// Runs x through the last blocks of a model and its head. Returns logits; if pass.features is not empty, fills it
/// instead and returns its last element.
template <class T, class Block, class Head>
Var<T> run_to_end(const ModelPass<T>& pass, const std::vector<Block>& blocks, Var<T> x, const Head& head) {
  const std::size_t wanted = pass.features.size();
  x = run_blocks(pass, blocks, x, head.reads(pass.tape), [&](std::size_t i, Var<T> y) {
    if (i + wanted >= blocks.size()) pass.features[i + wanted - blocks.size()] = head.features(y);
  });
  return wanted > 0 ? pass.features.back() : head(x);
}

}  // namespace heed
