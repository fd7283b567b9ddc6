// Optimisers and the schedule of the learning rate.
#pragma once

#include "heed/config/experiment.h"
#include "heed/base/parameters.h"

#include <string>
#include <vector>

namespace heed {

/// AdamW or SGD with momentum over all trainable tensors of a model.
///
/// sgd: g = gradient + weight_decay w; m = momentum m + g (m = g at the first step); w -= lr m.
/// adamw: see kernels/adamw.h.
template <class T>
class Optimizer {
 public:
  Optimizer(const OptimConfig& config, const Parameters<T>& parameters);

  /// One update with learning rate `lr` and the gradients times `gradient_factor`.
  void step(Parameters<T>& parameters, const Gradients<T>& gradients, double lr, double gradient_factor);

  /// Number of updates so far.
  Index steps() const { return steps_; }
  void set_steps(Index steps) { steps_ = steps; }

  /// Running means kept per weight, laid out as the values are: "momentum" for sgd, "mean" and "square" for adamw.
  struct State {
    std::string name;
    Tensor<T> values;
  };
  std::vector<State>& state() { return state_; }
  const std::vector<State>& state() const { return state_; }

 private:
  OptimConfig config_;
  std::vector<State> state_;
  Index steps_ = 0;
};

/// Norm of all gradients, and what clipping leaves of them: min(1, clip / (norm + 1e-6)), 1 for clip = 0.
struct Clipping {
  double norm, factor;
};
template <class T>
Clipping clip_by_norm(const Gradients<T>& gradients, double clip);

/// The learning rate of a step (from 0) of `total`: "constant" is lr throughout; "cosine" and "linear" rise linearly
/// over the warm-up, lr (step + 1) / warm_up, then fall as min_lr + (lr - min_lr) f(x), x = (step - warm_up) / (total -
/// warm_up),
///   with f(x) = (1 + cos(pi x)) / 2 or 1 - x;
/// "rsqrt" is lr min(1, s / warm_up) / sqrt(max(s, warm_up)) with s = step + 1 (Vaswani et al., arXiv:1706.03762, Eq.
/// 3).
double learning_rate(const OptimConfig& config, Index step, Index steps_per_epoch, Index total);

}  // namespace heed
