// Transformers for token sequences: text, pixels, expressions.
//
//   z = [front; tok_embed[tokens]] + positions               front: trained row, with `start` or pool = "cls"
//   z = z + attention(norm1(z));  z = z + mlp(norm2(z))      for each block, as in vit.h
//
//   task       logits                                                         for
//   lm         head(norm(z)), row by row; attention is causal                 the next token, [B, T, V]
//   classify   head(pool(norm(z)))                                            a label of a sequence, [B, C]
//   pair       head([x, y, x y, x - y]) with x, y = pool(norm(z)) of each     a label of a pair, [B, C]
//
// A sequence's results do not depend on the batch: sequences of different lengths are concatenated in memory
// (tape/segments.h), without masks or padding.
#pragma once

#include "heed/nn/block.h"
#include "heed/nn/model.h"
#include "heed/ops/sequences.h"

namespace heed {

/// A Transformer for sequences of tokens: language model, classifier, or classifier of pairs.
class SequenceModel : public ModelBase<SequenceModel> {
 public:
  /// Throws Error for an invalid configuration, as VisionTransformer does, if a mechanism or an option needs an image
  /// grid, if pool = "cls" is combined with causal attention, and if, for task = "lm", a mechanism has no causal form
  /// or has causal = false.
  SequenceModel(const ModelConfig& model, const AttentionConfig& attention, double dropout = 0, double drop_path = 0);

  /// Returns the model's configuration.
  const ModelConfig& config() const { return config_; }

  ModelInput<float> example() const override;
  Shape outputs() const override;
  double most_operations() const override;

  /// Throws Error unless each sequence has 1 to `context` tokens.
  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const;
  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const;

  /// Returns the state size after `inputs` inputs, for task = "lm".
  AttentionStateSize state_size(Index inputs) const;

  /// Computes the logits [1, 1, V] after the next input of a sequence, at the position of the pass's DecodingStep.
  /// `token` is -1 for the start token. For float and double.
  template <class T>
  Var<T> next_logits(Tape<T>& tape, int token) const;

 private:
  Index rows_of(Index tokens) const { return tokens + (config_.pool == "cls" && config_.task != "lm"); }
  bool is(const char* task) const { return config_.task == task; }

  /// Returns the rows of each sequence; for pairs, first and second sequences alternate.
  std::vector<TokenRows> rows_of(const ModelInput<float>& examples) const;
  template <class T>
  Var<T> embed(Tape<T>& tape, const std::vector<TokenRows>& rows) const;
  template <class T>
  Var<T> classify(Var<T> x) const;

  ModelConfig config_;
  double dropout_;
  std::string embed_name_ = "tok_embed", pool_name_ = "pool";
  ParameterId embedding_ = -1, front_ = -1, position_ = -1;
  std::vector<Block> blocks_;
  std::optional<LayerNormLayer> norm_;
  std::optional<LinearLayer> hidden_, head_;
  ActivationLayer relu_{"head.act", "relu"};
};

}  // namespace heed
