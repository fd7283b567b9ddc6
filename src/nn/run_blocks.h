// The blocks of a model, one after the other.
#pragma once

#include "heed/nn/attention.h"
#include "heed/nn/model.h"

namespace heed {

/// f(x). Where the pass recomputes, what f makes on the way is dropped, and made again on the way back.
template <class T, class F>
Var<T> kept_or_recomputed(Var<T> x, const F& f) {
  Tape<T>& tape = x.tape();
  return tape.pass().recompute ? tape.recompute(x, f) : f(x);
}

/// x [B, N, D] through the blocks; `last` says which tokens of the last block are wanted.
template <class T, class Block>
Var<T> run_blocks(const ModelPass<T>& pass, const std::vector<Block>& blocks, Var<T> x, Tokens last = Tokens::all) {
  for (const Block& block : blocks) {
    const Tokens tokens = &block == &blocks.back() ? last : Tokens::all;
    x = kept_or_recomputed(x, [&block, tokens, visit = pass.visit](Var<T> z) { return block(z, tokens, visit); });
  }
  return x;
}

}  // namespace heed
