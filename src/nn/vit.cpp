#include "heed/nn/vit.h"

#include "blocks.h"
#include "convolution.h"
#include "run_blocks.h"
#include "heed/base/math.h"
#include "heed/ops/patch_embedding.h"

namespace heed {

VisionTransformer::VisionTransformer(const ModelConfig& model, const AttentionConfig& attention, double dropout,
                                     double drop_path)
    : ImageModel(experiment_of(model, attention)), dropout_(dropout) {
  const Index side = model.image / model.patch, fan_in = model.channels * model.patch * model.patch;
  const bool cls = model.pool == "cls";
  if (cls) class_token_ = list_.add({"cls_token", {1, 1, model.dim}, Initial::truncated_normal(0.02), false});
  if (model.pos_embed)
    position_ = list_.add({"pos_embed", {1, side * side + cls, model.dim}, Initial::truncated_normal(0.02), false});
  patch_weight_ = list_.add(
      {"patch_embed.proj.weight", {model.dim, model.channels, model.patch, model.patch}, convolution_initial(fan_in)});
  patch_bias_ = list_.add({"patch_embed.proj.bias", {model.dim}, convolution_initial(fan_in), false});
  blocks_ = make_blocks(list_, model, attention, {grid_shape(side, cls), dropout, drop_path});
  head_.emplace(list_, model, model.dim);
}

Shape VisionTransformer::outputs() const {
  const Shape one = ImageModel::outputs();
  const Index side = config_.image / config_.patch;
  return config_.classifier && config_.output == "tokens" ? Shape{side * side, one[0]} : one;
}

/// Far above what a block of any mechanism takes per product of its sizes.
double VisionTransformer::most_operations() const {
  const ModelConfig& c = config_;
  const double tokens = math::pow(static_cast<double>(c.image / c.patch), 2) + 1, dim = static_cast<double>(c.dim);
  const double block = tokens * dim * (dim + static_cast<double>(c.hidden) + tokens);
  const double ends = tokens * dim * static_cast<double>(c.channels * c.patch * c.patch + c.classes);
  constexpr double margin = 100;
  return margin * (static_cast<double>(c.depth) * block + ends);
}

template <class T>
Var<T> VisionTransformer::embed(Tape<T>& tape, View<const T> images) const {
  require_images(images.shape());
  const typename Tape<T>::Scope patch_scope(tape, patch_name_);
  const Var<T> patches =
      patch_embedding(tape.constant(images), tape.parameter(patch_weight_), tape.parameter(patch_bias_));
  const typename Tape<T>::Scope position_scope(tape, position_name_);
  const Var<T> class_token = class_token_ < 0 ? Var<T>{} : tape.parameter(class_token_);
  Var<T> position = position_ < 0 ? Var<T>{} : tape.parameter(position_);
  const Index skip = class_token ? 1 : 0, side = config_.image / config_.patch;
  if (position && position.shape()[1] != skip + side * side) {
    const auto from = std::lround(std::sqrt(static_cast<double>(position.shape()[1] - skip)));
    position = interpolate_positions(position, skip, from, side);
  }
  const Var<T> tokens = embed_tokens(patches, class_token, position);
  return dropout(tokens, dropout_, 0xe3bed);
}

template <class T>
Var<T> VisionTransformer::run_logits(const ModelPass<T>& pass) const {
  return run_to_end(pass, blocks_, embed(pass.tape, pass.examples.images), *head_);
}

template <class T>
Var<T> VisionTransformer::run_penalty(Tape<T>& tape) const {
  return sum_of_penalties(tape, blocks_);
}

template Var<float> VisionTransformer::run_logits(const ModelPass<float>&) const;
template Var<double> VisionTransformer::run_logits(const ModelPass<double>&) const;
template Var<Counted> VisionTransformer::run_logits(const ModelPass<Counted>&) const;
template Var<float> VisionTransformer::run_penalty(Tape<float>&) const;
template Var<double> VisionTransformer::run_penalty(Tape<double>&) const;
template Var<Counted> VisionTransformer::run_penalty(Tape<Counted>&) const;

}  // namespace heed
