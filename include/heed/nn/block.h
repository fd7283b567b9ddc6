// A pre-norm transformer block: attention and a feed-forward layer, each with a residual connection.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/dropout.h"
#include "heed/ops/scale_channels.h"
#include "heed/ops/tokens.h"

#include <memory>
#include <optional>
#include <string>

namespace heed {

/// Feed-forward layer: fc2(act(fc1(x))). Tensors NAME.fc1.*, NAME.fc2.*, with adder layers also fc1_ln, fc2_ln.
class FeedForward {
 public:
  /// `act` is one of the names in ActivationLayer.
  FeedForward(ParameterList& list, const std::string& name, Index dim, Index hidden, std::string act,
              const std::optional<AdderLinearOptions>& adder = {})
      : act_(name + ".act", std::move(act)),
        fc1_(list, name + ".fc1", dim, hidden, adder),
        fc2_(list, name + ".fc2", hidden, dim, adder) {}

  /// Maps x, or norm(x) if `norm` is given; adds `residual` if given. `dropout_rate` is the probability of dropping an
  /// element of the activation's output.
  template <class T>
  Var<T> operator()(const LayerNormLayer* norm, Var<T> x, double dropout_rate, std::uint64_t place,
                    Var<T> residual = {}) const {
    const Var<T> hidden = norm ? fc1_.after(*norm, x) : fc1_(x);
    if (dropout_rate == 0 || !x.tape().draws()) return fc2_.after(act_, hidden, residual);
    const typename Tape<T>::Scope scope(x.tape(), act_.name());
    return fc2_(dropout(act_(hidden), dropout_rate, place), residual);
  }

 private:
  ActivationLayer act_;
  Projection fc1_, fc2_;
};

/// Returns the probability of skipping block i of `count`: it grows linearly with i, from 0 to `last`.
inline double drop_path_at(double last, Index i, Index count) {
  return count == 1 ? 0 : last * static_cast<double>(i) / static_cast<double>(count - 1);
}

/// Options of one block, besides its mechanism; they may differ between the blocks of a model.
struct BlockOptions {
  double dropout = 0;                         ///< probability of dropping an element, in training
  double drop_path = 0;                       ///< probability of skipping a branch, in training
  std::uint64_t place = 0;                    ///< distinguishes the blocks' random streams
  std::optional<AdderLinearOptions> adder{};  ///< options of adder layers, if the block uses them
};

/// Widths of a block, its activation, the eps of its norms, and the initial scale of its branches.
struct BlockSizes {
  Index dim = 0, hidden = 0;
  std::string act = "gelu";
  double eps = LayerNormLayer::usual_eps;
  double layer_scale = 0;  ///< 0: no branch scale
};

/// Declares the scale of a branch, one factor per channel.
inline ParameterId add_layer_scale(ParameterList& list, const std::string& name, Index dim, double initial) {
  return list.add({name, {dim}, Initial::constant(initial), false});
}

/// Dropout and stochastic depth of the branches: x + stochastic_depth(dropout(branch)).
struct Chance {
  double dropout = 0, drop_path = 0;
  std::uint64_t place = 0;

  /// Returns true if anything may be dropped in this pass.
  template <class T>
  bool acts(const Tape<T>& tape) const {
    return tape.draws() && (dropout != 0 || drop_path != 0);
  }

  /// Applies dropout and stochastic depth to a branch; `which`, 0 to 3, selects a random stream of the block.
  template <class T>
  Var<T> operator()(Var<T> branch, std::uint64_t which) const {
    return stochastic_depth(heed::dropout(branch, dropout, 4 * place + which), drop_path, 4 * place + which);
  }

  /// Returns x + gamma branch, with dropout and stochastic depth of the branch as in operator().
  template <class T>
  Var<T> scaled(Var<T> x, Var<T> branch, Var<T> gamma, std::uint64_t which) const {
    if (!acts(x.tape())) return scale_channels(branch, gamma, x);
    branch = scale_channels(heed::dropout(branch, dropout, 4 * place + which), gamma);
    return add(x, stochastic_depth(branch, drop_path, 4 * place + which));
  }
};

/// One pre-norm block: x + attention(norm1(x)), then x + mlp(norm2(x)). Tensors NAME.norm1.*, NAME.attn.*,
/// NAME.norm2.*, NAME.mlp.*; with scaled branches also NAME.ls1.gamma, NAME.ls2.gamma. Attention is AttentionLayer or
/// has the same interface.
template <class Attention>
class PreNormBlock {
 public:
  /// make_attention(list, name) creates the attention layer.
  template <class MakeAttention>
  PreNormBlock(ParameterList& list, const std::string& name, const BlockSizes& sizes,
               const MakeAttention& make_attention, const BlockOptions& options)
      : name_(name),
        chance_{options.dropout, options.drop_path, options.place},
        norm1_(list, name + ".norm1", sizes.dim, sizes.eps),
        attention_(make_attention(list, name + ".attn")),
        norm2_(list, name + ".norm2", sizes.dim, sizes.eps),
        mlp_(list, name + ".mlp", sizes.dim, sizes.hidden, sizes.act, options.adder) {
    if (sizes.layer_scale == 0) return;
    gamma1_ = add_layer_scale(list, name + ".ls1.gamma", sizes.dim, sizes.layer_scale);
    gamma2_ = add_layer_scale(list, name + ".ls2.gamma", sizes.dim, sizes.layer_scale);
  }

  /// Maps x [B, N, D] to [B, N, D], or to [B, D] if only the first token's output is needed. `visit`, if given,
  /// receives the inputs of the attention layer.
  template <class T>
  Var<T> operator()(Var<T> x, Tokens tokens = Tokens::all, const AttentionVisitor<T>* visit = nullptr) const {
    const typename Tape<T>::Scope scope(x.tape(), name_);
    const Var<T> residual = tokens == Tokens::first ? select_token(x, 0) : x;
    if (gamma1_ >= 0) {
      const Tape<T>& tape = x.tape();
      x = chance_.scaled(residual, attention_(x, {}, tokens, &norm1_, visit), x.tape().parameter(gamma1_), 0);
      const double rate = chance_.acts(tape) ? chance_.dropout : 0;
      return chance_.scaled(x, mlp_(&norm2_, x, rate, 4 * chance_.place + 1), x.tape().parameter(gamma2_), 2);
    }
    // A branch that may be dropped is added separately; otherwise the branch's last product adds the residual.
    if (!chance_.acts(x.tape())) {
      x = attention_(x, residual, tokens, &norm1_, visit);
      return mlp_(&norm2_, x, 0.0, chance_.place, x);
    }
    x = add(residual, chance_(attention_(x, {}, tokens, &norm1_, visit), 0));
    return add(x, chance_(mlp_(&norm2_, x, chance_.dropout, 4 * chance_.place + 1), 2));
  }

  /// Returns the state size after `tokens` tokens of incremental decoding.
  AttentionStateSize state_size(Index tokens) const { return attention_.state_size(tokens); }

  /// Returns the mechanism's penalty in the training loss, a scalar; none for most mechanisms.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return attention_.penalty(tape);
  }

 private:
  std::string name_;
  Chance chance_;
  LayerNormLayer norm1_;
  Attention attention_;
  LayerNormLayer norm2_;
  FeedForward mlp_;
  ParameterId gamma1_ = -1, gamma2_ = -1;
};

/// Returns the options of an attention layer from [model].
inline AttentionLayerOptions attention_options(const ModelConfig& config) {
  return {.qk_norm = config.qk_norm,
          .gate = config.gate,
          .gate_silu = config.gate_act == "silu",
          .qkv_bias = config.qkv_bias};
}

/// Block of a Vision Transformer.
class Block : public PreNormBlock<AttentionLayer> {
 public:
  Block(ParameterList& list, const std::string& name, const ModelConfig& config, std::unique_ptr<Mechanism> mechanism,
        const AttentionShape& shape, const BlockOptions& options)
      : PreNormBlock(
            list, name,
            {config.dim, config.hidden, options.adder ? config.ffn_act : config.act, config.norm_eps,
             config.block_scale},
            [&](ParameterList& to, const std::string& layer) {
              AttentionLayerOptions of = attention_options(config);
              of.adder = options.adder;
              return AttentionLayer(to, layer, config.dim, config.heads, std::move(mechanism), shape, of);
            },
            options) {}
};

/// Returns the sum of the blocks' penalties, plus `before` if given.
template <class T, class Blocks>
Var<T> sum_of_penalties(Tape<T>& tape, const Blocks& blocks, Var<T> before = {}) {
  for (const auto& block : blocks)
    if (const Var<T> term = block.penalty(tape)) before = before ? add(before, term) : term;
  return before;
}

}  // namespace heed
