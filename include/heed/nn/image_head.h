// Final layers of an image model.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/attention.h"
#include "heed/nn/layers.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/tokens.h"

#include <optional>

namespace heed {

/// Classifier: logits = head(y), where `pool` selects y: the class token of norm(x), or the mean of norm(x) over
/// patches. With output = "tokens", logits are head(norm(x)) of each patch. Tensors norm.*, head.*. With
/// pool_norm = "after", the norm, fc_norm.*, applies to the pooled vector. A second class token has its own classifier,
/// head_dist.*; logits are the mean of both. A model without a classifier has no head and returns its features as
/// logits.
class ImageHead {
 public:
  ImageHead(ParameterList& list, const ModelConfig& config, Index dim, double eps = LayerNormLayer::usual_eps)
      : cls_(config.pool == "cls"),
        tokens_(config.output == "tokens"),
        norm_last_(config.pool_norm == "after"),
        distilled_(config.distilled),
        prefix_(config.prefix_tokens()),
        norm_(list, norm_last_ ? "fc_norm" : "norm", dim, eps) {
    if (!config.classifier) return;
    head_.emplace(list, "head", dim, config.classes);
    if (distilled_) head_dist_.emplace(list, "head_dist", dim, config.classes);
  }

  /// Returns the tokens that the head reads. If it reads only the first, the last block skips the others after its
  /// attention, which saves a sixteenth of the work of twelve blocks.
  template <class T>
  Tokens reads(const Tape<T>& tape) const {
    return cls_ && !tokens_ && !distilled_ && takes_shortcuts(tape) ? Tokens::first : Tokens::all;
  }

  /// Maps x [B, N, D], or [B, D] if the head reads only the first token, to logits [B, classes], or to [B, n, classes]
  /// for n patches.
  template <class T>
  Var<T> operator()(Var<T> x) const {
    if (!head_) return features(x);
    if (tokens_) return head_->after(norm_, patches(x));
    if (!cls_) return norm_last_ ? head_->after(norm_, mean_tokens(patches(x))) : (*head_)(features(x));
    const typename Tape<T>::Scope scope(x.tape(), pool_name_);
    const Var<T> logits = head_->after(norm_, token(x, 0));
    return distilled_ ? scale(add(logits, head_dist_->after(norm_, token(x, 1))), 0.5) : logits;
  }

  /// Returns the classifier's input [B, D] from x; for two classifiers, the mean of their inputs.
  template <class T>
  Var<T> features(Var<T> x) const {
    const typename Tape<T>::Scope scope(x.tape(), pool_name_);
    if (distilled_) return scale(add(norm_(token(x, 0)), norm_(token(x, 1))), 0.5);
    if (cls_) return norm_(token(x, 0));
    return norm_last_ ? norm_(mean_tokens(patches(x))) : mean_tokens(norm_(patches(x)));
  }

 private:
  template <class T>
  static Var<T> token(Var<T> x, Index i) {
    return x.shape().rank() == 2 ? x : select_token(x, i);
  }
  template <class T>
  Var<T> patches(Var<T> x) const {
    return prefix_ > 0 ? skip_tokens(x, prefix_) : x;
  }

  bool cls_, tokens_, norm_last_, distilled_;
  Index prefix_;
  std::string pool_name_ = "pool";
  LayerNormLayer norm_;
  std::optional<LinearLayer> head_, head_dist_;
};

}  // namespace heed
