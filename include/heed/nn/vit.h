// The Vision Transformer. Dosovitskiy et al., "An image is worth 16x16 words", arXiv:2010.11929v2, Eq. 1-4:
//
//   z = [class token; patches E] + positions
//   z = z + attention(norm1(z));  z = z + mlp(norm2(z))      for each block
//   logits = head(norm(z)[class token], or its mean over tokens)
//
// Tensors carry timm's names and layouts, so weights travel both ways.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/ops/arithmetic.h"
#include "heed/ops/dropout.h"
#include "heed/ops/patch_embedding.h"
#include "heed/ops/tokens.h"

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

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

/// One pre-norm block: x + attention(norm1(x)), then x + mlp(norm2(x)). Tensors NAME.norm1.*, NAME.attn.*,
/// NAME.norm2.*, NAME.mlp.*.
class Block {
 public:
  /// `drop_path` is the probability of skipping a branch in training, `dropout` that of dropping an activation.
  /// `place` tells the random numbers of blocks apart. With `adder` its layers compute distances.
  Block(ParameterList& list, const std::string& name, const ModelConfig& config, std::unique_ptr<Mechanism> mechanism,
        const AttentionShape& shape, double dropout, double drop_path, std::uint64_t place,
        const std::optional<AdderLinearOptions>& adder = {})
      : name_(name),
        dropout_(dropout),
        drop_path_(drop_path),
        place_(place),
        norm1_(list, name + ".norm1", config.dim),
        attention_(list, name + ".attn", config.dim, config.heads, std::move(mechanism), shape,
                   {config.qk_norm, config.gate, config.gate_act == "silu", adder}),
        norm2_(list, name + ".norm2", config.dim),
        mlp_(list, name + ".mlp", config.dim, config.hidden, adder ? config.ffn_act : config.act, adder) {}

  /// x [B, N, D] to [B, N, D], or to [B, D] where the first token's output is all that is wanted.
  template <class T>
  Var<T> operator()(Var<T> x, Tokens tokens = Tokens::all) const {
    const typename Tape<T>::Scope scope(x.tape(), name_);
    const Var<T> residual = tokens == Tokens::first ? select_token(x, 0) : x;
    // Where a branch may be dropped it is added by itself; otherwise its last product adds it on the way.
    if (!x.tape().training() || (dropout_ == 0 && drop_path_ == 0)) {
      x = attention_(x, residual, tokens, &norm1_);
      return mlp_(norm2_, x, 0.0, place_, x);
    }
    x = add(residual, branch(attention_(x, {}, tokens, &norm1_), 0));
    return add(x, branch(mlp_(norm2_, x, dropout_, 4 * place_ + 1), 2));
  }

  const AttentionLayer& attention() const { return attention_; }

  /// What the attention layer of this block is given.
  template <class T>
  Var<T> attention_input(Var<T> x) const {
    return norm1_(x);
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

/// A Vision Transformer by its configuration. Holds the shape of the model and the names of its tensors; their
/// values come with the tape.
class VisionTransformer {
 public:
  /// Throws Error if the configuration describes no model (a patch that does not divide the image, an unknown
  /// mechanism, an option that no block's mechanism has).
  VisionTransformer(const ModelConfig& model, const AttentionConfig& attention, double dropout = 0,
                    double drop_path = 0);

  const ModelConfig& config() const { return config_; }
  const ParameterList& parameters() const { return list_; }

  /// Logits [B, classes] of images [B, C, H, W].
  template <class T>
  Var<T> operator()(Var<T> images) const {
    Tape<T>& tape = images.tape();
    Var<T> x = embed(images);
    // The head reads the class token alone, so after its attention the last block need not go on with the others: a
    // sixteenth of the work of twelve blocks.
    const bool cls = config_.pool == "cls", first = cls && takes_shortcuts(tape);
    for (const Block& block : blocks_) {
      const Tokens tokens = first && &block == &blocks_.back() ? Tokens::first : Tokens::all;
      const auto apply = [&block, tokens](Var<T> z) { return block(z, tokens); };
      x = tape.pass().recompute ? tape.recompute(x, apply) : apply(x);
    }
    const typename Tape<T>::Scope scope(tape, pool_name_);
    if (cls && !first) x = select_token(x, 0);
    return cls ? head_->after(*norm_, x) : (*head_)(mean_tokens((*norm_)(x)));
  }

  /// What the blocks' mechanisms add to the training loss, once per step: a scalar, or none.
  template <class T>
  Var<T> penalty(Tape<T>& tape) const {
    Var<T> total;
    for (const Block& block : blocks_)
      if (const Var<T> term = block.attention().penalty(tape)) total = total ? add(total, term) : term;
    return total;
  }

  /// Sees each block's attention layer with what it is given, x [B, N, D].
  template <class T>
  using AttentionVisitor = std::function<void(Index block, const AttentionLayer& layer, Var<T> x)>;

  /// Takes images [B, C, H, W] through the blocks in order, and calls visit(block, layer, x) before each.
  template <class T>
  void visit_attention(Var<T> images, const AttentionVisitor<T>& visit) const {
    Var<T> x = embed(images);
    for (std::size_t i = 0; i < blocks_.size(); ++i) {
      visit(static_cast<Index>(i), blocks_[i].attention(), blocks_[i].attention_input(x));
      if (i + 1 < blocks_.size()) x = blocks_[i](x);
    }
  }

  /// Attention maps [B, heads, N, N] of every block; empty where a mechanism has none.
  template <class T>
  std::vector<Tensor<T>> attention_maps(Var<T> images) const {
    std::vector<Tensor<T>> maps;
    visit_attention<T>(images, [&](Index, const AttentionLayer& layer, Var<T> x) {
      maps.push_back(layer.mechanism().traits().map ? layer.map(x) : Tensor<T>());
    });
    return maps;
  }

 private:
  template <class T>
  Var<T> embed(Var<T> images) const {
    Tape<T>& tape = images.tape();
    const Shape& shape = images.shape();
    require(shape.rank() == 4 && shape[1] == config_.channels && shape[2] == config_.image && shape[3] == config_.image,
            "[model] images have shape {}; expected [B, {}, {}, {}]", shape, config_.channels, config_.image,
            config_.image);
    const typename Tape<T>::Scope patch_scope(tape, patch_name_);
    const Var<T> patches = patch_embedding(images, tape.parameter(patch_weight_), tape.parameter(patch_bias_));
    const typename Tape<T>::Scope position_scope(tape, position_name_);
    const Var<T> tokens = embed_tokens(patches, class_token_ < 0 ? Var<T>{} : tape.parameter(class_token_),
                                       position_ < 0 ? Var<T>{} : tape.parameter(position_));
    return dropout(tokens, dropout_, 0xe3bed);
  }

  ModelConfig config_;
  double dropout_;
  ParameterList list_;
  std::string patch_name_ = "patch_embed.proj", position_name_ = "pos_embed", pool_name_ = "pool";
  ParameterId class_token_ = -1, position_ = -1, patch_weight_ = -1, patch_bias_ = -1;
  std::vector<Block> blocks_;
  std::optional<LayerNormLayer> norm_;
  std::optional<LinearLayer> head_;
};

extern template Var<float> VisionTransformer::operator()(Var<float>) const;
extern template Var<double> VisionTransformer::operator()(Var<double>) const;
extern template Var<Counted> VisionTransformer::operator()(Var<Counted>) const;
extern template void VisionTransformer::visit_attention(Var<float>, const AttentionVisitor<float>&) const;
extern template void VisionTransformer::visit_attention(Var<double>, const AttentionVisitor<double>&) const;
extern template std::vector<Tensor<float>> VisionTransformer::attention_maps(Var<float>) const;
extern template std::vector<Tensor<double>> VisionTransformer::attention_maps(Var<double>) const;

}  // namespace heed
