#include "heed/nn/vit.h"

#include "blocks.h"
#include "convolution.h"
#include "run_blocks.h"
#include "heed/ops/patch_embedding.h"

namespace heed {

VisionTransformer::VisionTransformer(const ModelConfig& model, const AttentionConfig& attention, double dropout,
                                     double drop_path)
    : ImageModel(experiment_of(model, attention)), dropout_(dropout) {
  const Sides grid = model.grid(), patch = model.patch;
  const Index fan_in = model.channels * patch.height * patch.width;
  const Index front = model.embed_prefix ? model.prefix_tokens() : 0;
  const auto add_prefix = [&](const char* name, Index count, const Initial& initial) {
    if (count > 0) prefix_.insert(prefix_.begin(), list_.add({name, {1, count, model.dim}, initial, false}));
  };
  add_prefix("cls_token", model.has_class_token(), Initial::truncated_normal(0.02));
  add_prefix("dist_token", model.distilled, Initial::normal(0.02));
  add_prefix("reg_token", model.registers, Initial::normal(0.02));
  if (model.pos_embed)
    position_ = list_.add({.name = "pos_embed",
                           .shape = {1, front + grid.height * grid.width, model.dim},
                           .initial = Initial::truncated_normal(0.02),
                           .decay = false,
                           .positions = {front, grid.height, grid.width}});
  patch_weight_ = list_.add(
      {"patch_embed.proj.weight", {model.dim, model.channels, patch.height, patch.width}, convolution_initial(fan_in)});
  if (!model.pre_norm)
    patch_bias_ = list_.add({"patch_embed.proj.bias", {model.dim}, convolution_initial(fan_in), false});
  if (model.pre_norm) pre_norm_.emplace(list_, "norm_pre", model.dim, model.norm_eps);
  blocks_ = make_blocks(list_, model, attention, {grid_shape(grid, model.prefix_tokens()), dropout, drop_path});
  head_.emplace(list_, model, model.dim, model.norm_eps);
}

Shape VisionTransformer::outputs() const {
  const Shape one = ImageModel::outputs();
  const Sides grid = config_.grid();
  return config_.classifier && config_.output == "tokens" ? Shape{grid.height * grid.width, one[0]} : one;
}

/// Returns `margin` times the sum of products of the sizes, far above the operations of any mechanism.
double VisionTransformer::most_operations() const {
  const ModelConfig& c = config_;
  const double patches = static_cast<double>(c.grid().height) * static_cast<double>(c.grid().width);
  const double tokens = patches + static_cast<double>(c.prefix_tokens()) + 1, dim = static_cast<double>(c.dim);
  const double block = tokens * dim * (dim + static_cast<double>(c.hidden) + tokens);
  const double ends = tokens * dim * static_cast<double>(c.channels * c.patch.height * c.patch.width + 2 * c.classes);
  constexpr double margin = 100;
  return margin * (static_cast<double>(c.depth) * block + ends);
}

template <class T>
Var<T> VisionTransformer::embed(Tape<T>& tape, View<const T> images) const {
  require_images(images.shape());
  const typename Tape<T>::Scope patch_scope(tape, patch_name_);
  const Var<T> patches =
      patch_embedding(tape.constant(images), tape.parameter(patch_weight_), parameter_or_none(tape, patch_bias_));
  const typename Tape<T>::Scope position_scope(tape, position_name_);
  Var<T> position = parameter_or_none(tape, position_);
  const Index front = config_.embed_prefix ? config_.prefix_tokens() : 0;
  const Sides grid = config_.grid();
  if (position && position.shape()[1] != front + grid.height * grid.width) {
    const auto from = std::lround(std::sqrt(static_cast<double>(position.shape()[1] - front)));
    position = interpolate_positions(position, front, from, grid);
  }
  Var<T> tokens = patches;
  const bool positions_first = front == 0 && position;
  if (positions_first || prefix_.empty()) tokens = embed_tokens(tokens, {}, position);
  for (const ParameterId& prefix : prefix_) {
    const bool with_positions = &prefix == &prefix_.back() && !positions_first;
    tokens = embed_tokens(tokens, tape.parameter(prefix), with_positions ? position : Var<T>{});
  }
  tokens = dropout(tokens, dropout_, 0xe3bed);
  return pre_norm_ ? (*pre_norm_)(tokens) : tokens;
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
