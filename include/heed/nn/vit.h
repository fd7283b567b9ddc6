// The Vision Transformer. Dosovitskiy et al., "An image is worth 16x16 words", arXiv:2010.11929v2, Eq. 1-4:
//
//   z = [class token; distillation token; registers; patches E] + positions
//   z = z + attention(norm1(z));  z = z + mlp(norm2(z))      for each block
//   logits = head(norm(z)[class token], or its mean over patches)
//
// Registers: Darcet et al., arXiv:2309.16588; distillation token: Touvron et al., arXiv:2012.12877; factors gamma of
// the branches: arXiv:2103.17239.
//
// Tensors have timm's names and layouts, so weights can be exchanged in both directions.
#pragma once

#include "heed/nn/block.h"
#include "heed/nn/image_head.h"
#include "heed/nn/image_model.h"

namespace heed {

/// A configurable Vision Transformer. Maps images [B, C, H, W] to logits [B, classes], or to [B, patches, classes] with
/// output = "tokens". If the pass's tensors belong to another image size, their position embedding is interpolated
/// (between square grids).
class VisionTransformer : public ImageModel<VisionTransformer> {
 public:
  /// Throws Error for an invalid configuration, such as a patch that does not divide the image, an unknown mechanism,
  /// or an option that no block's mechanism has.
  VisionTransformer(const ModelConfig& model, const AttentionConfig& attention, double dropout = 0,
                    double drop_path = 0);

  Shape outputs() const override;
  double most_operations() const override;
  FeatureSizes feature_sizes() const override { return {config_.depth, config_.dim}; }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const;
  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const;

 private:
  template <class T>
  Var<T> embed(Tape<T>& tape, View<const T> images) const;

  double dropout_;
  std::string patch_name_ = "patch_embed.proj", position_name_ = "pos_embed";
  ParameterId position_ = -1, patch_weight_ = -1, patch_bias_ = -1;
  std::vector<ParameterId> prefix_;  ///< tensors of the tokens before the patches, last token first
  std::optional<LayerNormLayer> pre_norm_;
  std::vector<Block> blocks_;
  std::optional<ImageHead> head_;
};

}  // namespace heed
