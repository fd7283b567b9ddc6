// The end of a model of images.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/ops/tokens.h"

namespace heed {

/// logits = head(norm(x)[class token], or its mean over tokens), as pool says. Tensors norm.*, head.*.
class ImageHead {
 public:
  ImageHead(ParameterList& list, const ModelConfig& config, Index dim, double eps = LayerNormLayer::usual_eps)
      : cls_(config.pool == "cls"), norm_(list, "norm", dim, eps), head_(list, "head", dim, config.classes) {}

  /// The tokens it reads. After its attention, the last block of a model need not go on with the others: a sixteenth of
  /// the work of twelve blocks.
  template <class T>
  Tokens reads(const Tape<T>& tape) const {
    return cls_ && takes_shortcuts(tape) ? Tokens::first : Tokens::all;
  }

  /// x [B, N, D], or [B, D] where it reads the first token alone, to logits [B, classes].
  template <class T>
  Var<T> operator()(Var<T> x) const {
    const typename Tape<T>::Scope scope(x.tape(), pool_name_);
    if (!cls_) return head_(mean_tokens(norm_(x)));
    return head_.after(norm_, reads(x.tape()) == Tokens::first ? x : select_token(x, 0));
  }

 private:
  bool cls_;
  std::string pool_name_ = "pool";
  LayerNormLayer norm_;
  LinearLayer head_;
};

}  // namespace heed
