// gelu, relu and silu.
#pragma once

#include "heed/kernels/activation.h"
#include "heed/ops/rows.h"

namespace heed {

/// y = x Phi(x), exact (kernels/activation.h). dx += dy (Phi(x) + x phi(x)).
template <class T>
Var<T> gelu(Var<T> x) {
  Tape<T>& tape = tape_of("gelu", x);
  const Index n = x.size();
  Cost cost;
  cost.forward = {.mul = 3 * n, .add = n, .erf = n};
  cost.backward = {.mul = 7 * n, .add = 2 * n, .exp = n, .erf = n};
  return tape.record(
      {"gelu", cost}, x.shape(), {x},
      [=](T* y) {
        const T* px = x.data();
        for_row_ranges(n, 8,
                       [=](Index begin, Index end) { kernels::gelu_forward(end - begin, px + begin, y + begin); });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pdy = dy.data();
        if (const auto dx = tape.target(x))
          for_row_ranges(n, 8, [=](Index begin, Index end) {
            kernels::gelu_backward(end - begin, px + begin, pdy + begin, dx.update, dx.data + begin);
          });
      });
}

/// y = max(x, 0). dx += dy where x > 0.
template <class T>
Var<T> relu(Var<T> x) {
  Tape<T>& tape = tape_of("relu", x);
  const Index n = x.size();
  Cost cost;
  cost.forward = cost.backward = {.cmp = n};
  return tape.record(
      {"relu", cost}, x.shape(), {x},
      [=](T* y) {
        const T* px = x.data();
        for_row_ranges(n, 1,
                       [=](Index begin, Index end) { kernels::relu_forward(end - begin, px + begin, y + begin); });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pdy = dy.data();
        if (const auto dx = tape.target(x))
          for_row_ranges(n, 1, [=](Index begin, Index end) {
            kernels::relu_backward(end - begin, px + begin, pdy + begin, dx.update, dx.data + begin);
          });
      });
}

/// y = x / (1 + exp(-x)). dx += dy s (1 + x (1 - s)), s the logistic function of x (kernels/activation.h).
template <class T>
Var<T> silu(Var<T> x) {
  Tape<T>& tape = tape_of("silu", x);
  const Index n = x.size();
  Cost cost;
  cost.forward = {.add = n, .div = n, .exp = n};
  cost.backward = {.mul = 3 * n, .add = 3 * n, .div = n, .exp = n};
  return tape.record(
      {"silu", cost}, x.shape(), {x},
      [=](T* y) {
        const T* px = x.data();
        for_row_ranges(n, 8,
                       [=](Index begin, Index end) { kernels::silu_forward(end - begin, px + begin, y + begin); });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pdy = dy.data();
        if (const auto dx = tape.target(x))
          for_row_ranges(n, 8, [=](Index begin, Index end) {
            kernels::silu_backward(end - begin, px + begin, pdy + begin, dx.update, dx.data + begin);
          });
      });
}

}  // namespace heed
