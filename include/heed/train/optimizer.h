// Optimisers, weight averages, gradient clipping and learning-rate schedules.
#pragma once

#include "heed/config/experiment.h"
#include "heed/base/parameters.h"

#include <string>
#include <vector>

namespace heed {

/// Learning rate and weight decay of a step.
struct Rates {
  double lr = 0, weight_decay = 0;
};

/// AdamW or SGD with momentum over all trainable tensors of a model.
///
/// sgd: g = gradient + decay w; m = momentum m + g (m = g in a tensor's first update); w -= lr m.
/// adamw: see kernels/elements/adamw.h.
template <class T>
class Optimizer {
 public:
  Optimizer(const OptimConfig& config, const Parameters<T>& parameters);

  /// Updates the parameters by the gradients times `gradient_factor`. `frozen` tensors and their running means stay
  /// unchanged; adamw's bias corrections count only the updates in which a tensor was not frozen.
  void step(Parameters<T>& parameters, const Gradients<T>& gradients, const Rates& rates, double gradient_factor = 1,
            const std::vector<ParameterId>& frozen = {});

  /// Return the number of updates, and for each tensor the number of updates in which it was frozen.
  Index steps() const { return steps_; }
  void set_steps(Index steps) { steps_ = steps; }
  std::vector<Index>& left_out() { return left_out_; }

  /// Running means, laid out like the weights: "momentum" for sgd, "mean" and "square" for adamw.
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
  std::vector<Index> left_out_;
};

/// Updates an exponential moving average of a model's weights: average = decay average + (1 - decay) parameters.
template <class T>
void average_weights(Parameters<T>& average, const Parameters<T>& parameters, double decay);

/// Updates the average with average_weights(), and copies the tensors that are not trained, such as positions of
/// landmarks.
template <class T>
void update_average(Parameters<T>& average, const Parameters<T>& parameters, double decay);

/// Norm of all gradients, and the clipping factor: min(1, clip / (norm + 1e-6)), 1 for clip = 0.
struct Clipping {
  double norm, factor;
};

/// Returns the norm and the factor, without scaling the gradients.
template <class T>
Clipping clip_by_norm(const Gradients<T>& gradients, double clip);

/// Scales the gradient of each tensor to a norm of at most `clip`. Returns the norm of all gradients before scaling,
/// and the factor 1.
template <class T>
Clipping clip_each(Gradients<T>& gradients, double clip);

/// Scales each tensor's gradient to a norm of at most `largest` if `each`; otherwise returns the factor that limits the
/// norm of all gradients, without scaling them.
template <class T>
Clipping clip(Gradients<T>& gradients, double largest, bool each) {
  return each ? clip_each(gradients, largest) : clip_by_norm(gradients, largest);
}

/// Returns the learning rate of step `step` of `total`, counted from 0. The warm-up has w steps, and s = step + 1:
///
///   constant         lr
///   cosine, linear   lr s / w in the warm-up, then min_lr + (lr - min_lr) f((step - w) / (total - w))
///                    with f(x) = (1 + cos(pi x)) / 2 or 1 - x
///   rsqrt            lr min(1, s / w) / sqrt(max(s, w))     Vaswani et al., arXiv:1706.03762, Eq. 3
double learning_rate(const OptimConfig& config, Index step, Index steps_per_epoch, Index total);

/// Returns b + (a - b) (1 + cos(pi step / total)) / 2, which runs from a to b.
double cosine(double a, double b, Index step, Index total);

/// Returns the learning rate and the weight decay of a step. The decay is weight_decay or, with weight_decay_end, falls
/// or rises to that value along a cosine.
Rates rates_of(const OptimConfig& config, Index step, Index steps_per_epoch, Index total);

}  // namespace heed
