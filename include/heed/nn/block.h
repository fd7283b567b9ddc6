// A pre-norm block of a transformer: attention and a feed-forward layer, each beside a residual connection.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/dropout.h"
#include "heed/ops/tokens.h"

#include <memory>
#include <optional>
#include <string>

namespace heed {

/// Feed-forward layer: fc2(act(fc1(norm(x)))). Tensors NAME.fc1.*, NAME.fc2.*, with adder layers also fc1_ln, fc2_ln.
class FeedForward {
 public:
  /// `act` is "gelu", "relu" or "none".
  FeedForward(ParameterList& list, const std::string& name, Index dim, Index hidden, std::string act,
              const std::optional<AdderLinearOptions>& adder = {})
      : act_(name + ".act", std::move(act)),
        fc1_(list, name + ".fc1", dim, hidden, adder),
        fc2_(list, name + ".fc2", hidden, dim, adder) {}

  /// `norm` belongs to the block; `residual` is added if given. `dropout_rate` is the probability of dropping an
  /// element of what act gives.
  template <class T>
  Var<T> operator()(const LayerNormLayer& norm, Var<T> x, double dropout_rate, std::uint64_t place,
                    Var<T> residual = {}) const {
    const Var<T> hidden = fc1_.after(norm, x);
    if (dropout_rate == 0 || !x.tape().training()) return fc2_.after(act_, hidden, residual);
    const typename Tape<T>::Scope scope(x.tape(), act_.name());
    return fc2_(dropout(act_(hidden), dropout_rate, place), residual);
  }

 private:
  ActivationLayer act_;
  Projection fc1_, fc2_;
};

/// What tells the blocks of a model apart beside their mechanisms.
struct BlockOptions {
  double dropout = 0;                         ///< probability of dropping an activation, in training
  double drop_path = 0;                       ///< probability of skipping a branch, in training
  std::uint64_t place = 0;                    ///< tells their random numbers apart
  std::optional<AdderLinearOptions> adder{};  ///< its layers compute distances
};

/// One pre-norm block: x + attention(norm1(x)), then x + mlp(norm2(x)). Tensors NAME.norm1.*, NAME.attn.*,
/// NAME.norm2.*, NAME.mlp.*.
class Block {
 public:
  Block(ParameterList& list, const std::string& name, const ModelConfig& config, std::unique_ptr<Mechanism> mechanism,
        const AttentionShape& shape, const BlockOptions& options)
      : name_(name),
        dropout_(options.dropout),
        drop_path_(options.drop_path),
        place_(options.place),
        norm1_(list, name + ".norm1", config.dim),
        attention_(list, name + ".attn", config.dim, config.heads, std::move(mechanism), shape,
                   {config.qk_norm, config.gate, config.gate_act == "silu", options.adder}),
        norm2_(list, name + ".norm2", config.dim),
        mlp_(list, name + ".mlp", config.dim, config.hidden, options.adder ? config.ffn_act : config.act,
             options.adder) {}

  /// x [B, N, D] to [B, N, D], or to [B, D] where the first token's output is all that is wanted. `visit`, if given,
  /// sees the attention layer.
  template <class T>
  Var<T> operator()(Var<T> x, Tokens tokens = Tokens::all, const AttentionVisitor<T>* visit = nullptr) const {
    const typename Tape<T>::Scope scope(x.tape(), name_);
    const Var<T> residual = tokens == Tokens::first ? select_token(x, 0) : x;
    // Where a branch may be dropped it is added by itself; otherwise its last product adds it on the way.
    if (!x.tape().training() || (dropout_ == 0 && drop_path_ == 0)) {
      x = attention_(x, residual, tokens, &norm1_, visit);
      return mlp_(norm2_, x, 0.0, place_, x);
    }
    x = add(residual, branch(attention_(x, {}, tokens, &norm1_, visit), 0));
    return add(x, branch(mlp_(norm2_, x, dropout_, 4 * place_ + 1), 2));
  }

  /// Numbers of state after so many tokens of a sequence that is decoded token by token.
  Index state_numbers(Index tokens) const { return attention_.state_numbers(tokens); }

  /// What the mechanism adds to the training loss, a scalar; none for most.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    return attention_.penalty(tape);
  }

 private:
  template <class T>
  Var<T> branch(Var<T> x, std::uint64_t which) const {
    return stochastic_depth(dropout(x, dropout_, 4 * place_ + which), drop_path_, 4 * place_ + which);
  }

  std::string name_;
  double dropout_, drop_path_;
  std::uint64_t place_;
  LayerNormLayer norm1_;
  AttentionLayer attention_;
  LayerNormLayer norm2_;
  FeedForward mlp_;
};

}  // namespace heed
