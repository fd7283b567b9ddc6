// The end of a model of images.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/ops/tokens.h"

#include <optional>

namespace heed {

/// logits = head(norm(x)[class token], or its mean over tokens), as pool says; or with output = "tokens" head(norm(x))
/// of each patch. Tensors norm.*, head.*. A model without a classifier has no head: its features stand for logits.
class ImageHead {
 public:
  ImageHead(ParameterList& list, const ModelConfig& config, Index dim, double eps = LayerNormLayer::usual_eps)
      : cls_(config.pool == "cls"), tokens_(config.output == "tokens"), norm_(list, "norm", dim, eps) {
    if (config.classifier) head_.emplace(list, "head", dim, config.classes);
  }

  /// The tokens it reads. After its attention, the last block of a model need not go on with the others: a sixteenth of
  /// the work of twelve blocks.
  template <class T>
  Tokens reads(const Tape<T>& tape) const {
    return cls_ && !tokens_ && takes_shortcuts(tape) ? Tokens::first : Tokens::all;
  }

  /// x [B, N, D], or [B, D] where it reads the first token alone, to logits [B, classes], or of patches [B, n,
  /// classes].
  template <class T>
  Var<T> operator()(Var<T> x) const {
    if (!head_) return features(x);
    if (tokens_) return head_->after(norm_, cls_ ? skip_tokens(x, 1) : x);
    if (!cls_) return (*head_)(features(x));
    const typename Tape<T>::Scope scope(x.tape(), pool_name_);
    return head_->after(norm_, first_token(x));
  }

  /// Returns the classifier's input from x: [B, D].
  template <class T>
  Var<T> features(Var<T> x) const {
    const typename Tape<T>::Scope scope(x.tape(), pool_name_);
    return cls_ ? norm_(first_token(x)) : mean_tokens(norm_(x));
  }

 private:
  template <class T>
  static Var<T> first_token(Var<T> x) {
    return x.shape().rank() == 2 ? x : select_token(x, 0);
  }

  bool cls_, tokens_;
  std::string pool_name_ = "pool";
  LayerNormLayer norm_;
  std::optional<LinearLayer> head_;
};

}  // namespace heed
