#include "heed/train/optimizer.h"

#include "heed/base/math.h"
#include "heed/kernels/elements/adamw.h"
#include "heed/base/parallel.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace heed {

namespace {

/// Elements per update task.
constexpr Index range = Index{1} << 12;

/// Elements per partial sum of squares; determines the bits of the sum.
constexpr Index sum_range = Index{1} << 15;

/// Calls f(begin, end) for ranges of [0, size), on all threads.
template <class F>
void for_ranges(Index size, const F& f) {
  const Index count = (size + range - 1) / range;
  parallel_for(count, [&](Index i) { f(i * range, std::min(size, (i + 1) * range)); });
}

}  // namespace

template <class T>
Optimizer<T>::Optimizer(const OptimConfig& config, const Parameters<T>& parameters)
    : config_(config), left_out_(parameters.list().size()) {
  const Shape shape{parameters.trainable_size()};
  if (config.name == "sgd") {
    state_.push_back({"momentum", Tensor<T>(shape)});
  } else {
    require(config.name == "adamw", "[optim] name = '{}'; expected adamw or sgd", config.name);
    require(config.betas.size() == 2, "[optim] betas has {} values; expected 2", config.betas.size());
    state_.push_back({"mean", Tensor<T>(shape)});
    state_.push_back({"square", Tensor<T>(shape)});
  }
}

template <class T>
void Optimizer<T>::step(Parameters<T>& parameters, const Gradients<T>& gradients, const Rates& rates,
                        double gradient_factor, const std::vector<ParameterId>& frozen) {
  const Index size = parameters.trainable_size();
  require(gradients.trainable_size() == size && state_[0].values.size() == size,
          "[optim] {} weights, {} gradients, and an optimiser of {} weights; create all three from one list", size,
          gradients.trainable_size(), state_[0].values.size());
  const double lr = rates.lr;
  ++steps_;
  for (const ParameterId id : frozen) ++left_out_[id];
  const bool adamw = state_.size() == 2;
  // Applies update number `count` to weights [begin, end).
  const auto update = [&](Index begin, Index end, double decay, Index count) {
    T* const w = parameters.data();
    const T* const g = gradients.data();
    if (adamw) {
      kernels::AdamWStep step{lr, config_.betas[0], config_.betas[1], config_.eps};
      step.correction1 = 1 - math::pow(step.beta1, static_cast<double>(count));
      step.correction2 = 1 - math::pow(step.beta2, static_cast<double>(count));
      step.gradient_factor = gradient_factor;
      step.weight_decay = decay;
      kernels::adamw(step, end - begin, w + begin, g + begin, state_[0].values.data() + begin,
                     state_[1].values.data() + begin);
      return;
    }
    T* const m = state_[0].values.data();
    for (Index i = begin; i < end; ++i) {
      const T gradient = T(gradient_factor) * g[i] + T(decay) * w[i];
      m[i] = count == 1 ? gradient : T(config_.momentum) * m[i] + gradient;
      w[i] -= T(lr) * m[i];
    }
  };
  const ParameterList& list = parameters.list();
  for_ranges(parameters.trainable_size(), [&](Index begin, Index end) {
    // Updates each tensor's slice of the range separately: weight decay applies to some tensors only.
    for (ParameterId id = 0; id < list.size(); ++id) {
      if (!list[id].trainable || std::find(frozen.begin(), frozen.end(), id) != frozen.end()) continue;
      const Index from = std::max(begin, parameters.offset(id));
      const Index to = std::min(end, parameters.offset(id) + list[id].shape.elements());
      if (from < to) update(from, to, list[id].decay ? rates.weight_decay : 0.0, steps_ - left_out_[id]);
    }
  });
}

namespace {

/// Returns the sum of squares of `size` elements.
template <class T>
double sum_of_squares(const T* numbers, Index size) {
  const Index count = (size + sum_range - 1) / sum_range;
  constexpr Index most = 64;
  double sums[most] = {};
  // At most 64 partial sums: sum p covers the ranges p, p + 64, ... in order, and the sums are added in order.
  parallel_for(std::min(count, most), [&](Index p) {
    double sum = 0;
    for (Index i = p; i < count; i += most) {
      double squares[8] = {};
      const T* const g = numbers + i * sum_range;
      const Index n = std::min(sum_range, size - i * sum_range);
      for (Index j = 0; j < n; ++j) squares[j % 8] += static_cast<double>(g[j]) * static_cast<double>(g[j]);
      for (const double square : squares) sum += square;
    }
    sums[p] = sum;
  });
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

double clip_factor(double norm, double clip) { return clip > 0 ? std::min(1.0, clip / (norm + 1e-6)) : 1.0; }

}  // namespace

template <class T>
void average_weights(Parameters<T>& average, const Parameters<T>& parameters, double decay) {
  const T keep(decay), share(1 - decay);
  for_ranges(parameters.trainable_size(), [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) average.data()[i] = keep * average.data()[i] + share * parameters.data()[i];
  });
}

template <class T>
void update_average(Parameters<T>& average, const Parameters<T>& parameters, double decay) {
  average_weights(average, parameters, decay);
  const Index trained = parameters.trainable_size();
  std::copy(parameters.data() + trained, parameters.data() + parameters.size(), average.data() + trained);
}

template <class T>
Clipping clip_by_norm(const Gradients<T>& gradients, double clip) {
  const double norm = std::sqrt(sum_of_squares(gradients.data(), gradients.trainable_size()));
  return {norm, clip_factor(norm, clip)};
}

template <class T>
Clipping clip_each(Gradients<T>& gradients, double clip) {
  const double all = sum_of_squares(gradients.data(), gradients.trainable_size());
  const ParameterList& list = gradients.list();
  for (ParameterId id = 0; id < list.size(); ++id) {
    if (!list[id].trainable) continue;
    const View<T> gradient = gradients[id];
    const T factor(clip_factor(std::sqrt(sum_of_squares(gradient.data(), gradient.size())), clip));
    if (factor != 1)
      for_ranges(gradient.size(), [&](Index begin, Index end) {
        for (Index i = begin; i < end; ++i) gradient[i] *= factor;
      });
  }
  return {std::sqrt(all), 1};
}

double cosine(double a, double b, Index step, Index total) {
  return b + (a - b) * (1 + math::cos(std::numbers::pi * static_cast<double>(step) / static_cast<double>(total))) / 2;
}

Rates rates_of(const OptimConfig& config, Index step, Index steps_per_epoch, Index total) {
  const double decay = config.weight_decay_end < 0 ? config.weight_decay
                                                   : cosine(config.weight_decay, config.weight_decay_end, step, total);
  return {learning_rate(config, step, steps_per_epoch, total), decay};
}

double learning_rate(const OptimConfig& config, Index step, Index steps_per_epoch, Index total) {
  if (config.schedule == "constant") return config.lr;
  const double warm_up = config.warmup_steps > 0
                             ? static_cast<double>(config.warmup_steps)
                             : std::round(config.warmup_epochs * static_cast<double>(steps_per_epoch));
  const double s = static_cast<double>(step);
  if (config.schedule == "rsqrt")
    return config.lr * std::min(1.0, (s + 1) / warm_up) / std::sqrt(std::max(s + 1, warm_up));
  if (s < warm_up) return config.lr * (s + 1) / warm_up;
  const double progress = std::min(1.0, (s - warm_up) / std::max(1.0, static_cast<double>(total) - warm_up));
  const double left = config.schedule == "linear" ? 1 - progress : (1 + math::cos(std::numbers::pi * progress)) / 2;
  return config.min_lr + (config.lr - config.min_lr) * left;
}

template class Optimizer<float>;
template class Optimizer<double>;
template void average_weights(Parameters<float>&, const Parameters<float>&, double);
template void average_weights(Parameters<double>&, const Parameters<double>&, double);
template void update_average(Parameters<float>&, const Parameters<float>&, double);
template void update_average(Parameters<double>&, const Parameters<double>&, double);
template Clipping clip_by_norm(const Gradients<float>&, double);
template Clipping clip_by_norm(const Gradients<double>&, double);
template Clipping clip_each(Gradients<float>&, double);
template Clipping clip_each(Gradients<double>&, double);

}  // namespace heed
