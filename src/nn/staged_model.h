// Staged models (pyramids): each stage usually has fewer and wider tokens than the previous one.
#pragma once

#include "run_blocks.h"
#include "heed/base/math.h"
#include "heed/nn/block.h"
#include "heed/nn/image_head.h"
#include "heed/nn/image_model.h"

namespace heed {

/// Base of staged image models with batch norm. stage(pass, x [B, before^2, C], before, last) returns the tokens of the
/// stage for its input x; `last` selects the tokens of its last block's output. Derived fills stages_ and head_.
template <class Derived, class Stage>
class StagedModel : public BatchNormModel<Derived> {
 public:
  using BatchNormModel<Derived>::BatchNormModel;

  /// Returns `margin` times the sum of products of the sizes, far above the operations of any mechanism.
  double most_operations() const override {
    const ModelConfig& c = this->config_;
    const StageSizes& s = c.stages;
    constexpr double margin = 1000;
    const double image = static_cast<double>(c.image), stem = static_cast<double>(c.stem);
    double in = static_cast<double>(c.channels), sum = image * image * stem * (in + stem);
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      const double tokens = math::pow(static_cast<double>(stages_[i].side()), 2) + 1;
      const double dim = static_cast<double>(s.dim[i]);
      const double window = static_cast<double>(s.patch.empty() ? 3 : s.patch[i]);  // 3 x 3 by default
      sum += tokens * dim * (window * window * in + stem + static_cast<double>(c.classes));
      sum += static_cast<double>(s.depth[i]) * tokens * dim * (dim + static_cast<double>(s.hidden[i]) + tokens);
      in = dim;
    }
    return margin * sum;
  }

  FeatureSizes feature_sizes() const override { return {1, this->config_.stages.dim.back()}; }

  template <class T>
  Var<T> run_logits(const ModelPass<T>& pass) const {
    Tape<T>& tape = pass.tape;
    Var<T> x = this->pixels_of(pass);
    Index side = this->config_.image;
    for (const Stage& stage : stages_) {
      x = stage(pass, x, side, &stage == &stages_.back() ? head_->reads(tape) : Tokens::all);
      side = stage.side();
    }
    return pass.features.empty() ? (*head_)(x) : pass.features.back() = head_->features(x);
  }

  template <class T>
  Var<T> run_penalty(Tape<T>& tape) const {
    Var<T> sum;
    for (const Stage& stage : stages_) sum = sum_of_penalties(tape, stage.blocks(), sum);
    return sum;
  }

 protected:
  std::vector<Stage> stages_;
  std::optional<ImageHead> head_;
};

/// Calls f(), which creates a stage of a model, and adds the stage and its grid to the errors that f throws.
template <class F>
auto in_stage(Index stage, Index side, const F& f) {
  try {
    return f();
  } catch (const Error& error) {
    fail("[model] stage {}, on a grid of {} x {}: {}", stage, side, side, error.what());
  }
}

}  // namespace heed
