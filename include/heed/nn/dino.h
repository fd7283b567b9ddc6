// A backbone with the head for self-distillation. Caron et al., arXiv:2104.14294v2, Section 3.
//
//   x = features of a view                     class token or mean over patches, after the final norm
//   h = gelu(mlp.2(gelu(mlp.0(x))))            mlp.0 [hidden, D], mlp.2 [hidden, hidden]
//   y = mlp.4(h)                               mlp.4 [bottleneck, hidden]
//   logits = W y / max(|y|, 1e-12)             W [out_dim, bottleneck], whose row k is g_k v_k / |v_k|
//
// W is weight-normalised: Salimans, Kingma, arXiv:1602.07868, Eq. 2. v is last_layer.weight_v; g is last_layer.weight_g
// [out_dim, 1], or 1 with norm_last_layer.
#pragma once

#include "heed/config/experiment.h"
#include "heed/nn/layers.h"
#include "heed/nn/model.h"
#include "heed/ops/dino.h"

#include <memory>
#include <optional>

namespace heed {

/// The head. Tensors PREFIXmlp.0.*, PREFIXmlp.2.*, PREFIXmlp.4.*, PREFIXlast_layer.*; W is prepared once per step.
class DinoHead {
 public:
  DinoHead(ParameterList& list, const std::string& prefix, Index dim, const DinoConfig& config);

  /// Maps features [B, D] to logits [B, out_dim].
  template <class T>
  Var<T> operator()(Var<T> x) const {
    const Var<T> y = project_.after(act2_, hidden_.after(act1_, first_(x)));
    const typename Tape<T>::Scope scope(x.tape(), last_name_);
    return linear(unit_rows(y), x.tape().parameter(last_));
  }

 private:
  LinearLayer first_, hidden_, project_;
  ActivationLayer act1_, act2_;
  std::string last_name_;
  ParameterId last_;
};

/// Prefix of the head's tensor names in a model.
inline constexpr const char* dino_prefix = "dino.";

/// A backbone with the head. Tensors of the backbone keep their names; those of the head have the prefix "dino.". Takes
/// two large views of each image, [B, 2, C, H, W], and any number L of small views, [B, L, C, h, w]; all large views
/// form one batch of the backbone, and all small views another. Logits are [2 B + L B, out_dim]: rows of the large
/// views image by image, then those of the small views. Features are the backbone's, for images [B, C, H, W].
class DinoModel : public ModelBase<DinoModel> {
 public:
  /// Throws Error if the tensors for small views differ from those for large ones, except for position embeddings.
  explicit DinoModel(const Experiment& experiment);

  ModelInput<float> example() const override;
  Shape outputs() const override { return Shape{config_.out_dim}; }
  double most_operations() const override;
  FeatureSizes feature_sizes() const override { return large_->feature_sizes(); }
  bool examples_depend(Index batch) const override { return large_->examples_depend(batch); }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const;
  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const {
    return large_->penalty(tape);
  }

 private:
  DinoConfig config_;
  std::unique_ptr<Model> large_;  ///< the backbone for large views
  std::unique_ptr<Model> small_;  ///< the backbone for small views; null if there are none
  std::optional<DinoHead> head_;
};

}  // namespace heed
