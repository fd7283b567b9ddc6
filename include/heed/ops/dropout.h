// Dropout and stochastic depth: random in training, the identity in evaluation.
#pragma once

#include "heed/ops/rows.h"

namespace heed {

namespace detail {

/// Multiplies groups of `group` neighbouring elements by 1 / (1 - rate) or, with probability `rate`, by 0.
/// Group g of a pass draws number (first image * groups per image + g) of the stream, so that results do not
/// depend on how the batch is cut into pieces.
template <class T>
Var<T> drop(const char* name, Var<T> x, double rate, std::uint64_t place, Index group) {
  Tape<T>& tape = tape_of(name, x);
  require(rate >= 0 && rate < 1, "[{}] the rate is {}; expected 0 <= rate < 1", name, rate);
  if (!tape.training() || rate == 0) return x;
  const Index n = x.size(), first = n == 0 ? 0 : tape.pass().first_image * (n / x.shape()[0] / group);
  const RandomStream stream = tape.pass().random.derive(name).derive(place);
  const T kept(1 / (1 - rate));
  const auto apply = [=](const T* from, Update update, T* to) {
    for (Index i = 0; i < n; i += group) {
      const T factor = stream.uniform(first + i / group) < rate ? T(0) : kept;
      for (Index j = i; j < i + group; ++j) write(update, to[j], factor * from[j]);
    }
  };
  Cost cost;
  cost.forward = cost.backward = {.mul = n};
  return tape.record(
      {name, cost}, x.shape(), {x}, [=](T* y) { apply(x.data(), Update::assign, y); },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x)) apply(dy.data(), dx.update, dx.data);
      });
}

}  // namespace detail

/// y = x m / (1 - rate), each m 0 with probability `rate`, else 1. `place` tells the dropouts of a model apart.
/// Srivastava et al., "Dropout", JMLR 15, 2014.
template <class T>
Var<T> dropout(Var<T> x, double rate, std::uint64_t place) {
  return detail::drop("dropout", x, rate, place, 1);
}

/// The same for all of an image at once: a branch beside a residual connection is dropped for that image.
/// x [B, ...]. Huang et al., "Deep networks with stochastic depth", arXiv:1603.09382.
template <class T>
Var<T> stochastic_depth(Var<T> x, double rate, std::uint64_t place) {
  const Index images = x.shape().rank() == 0 ? 1 : x.shape()[0];
  return detail::drop("stochastic_depth", x, rate, place, images == 0 ? 1 : x.size() / images);
}

}  // namespace heed
