// Layer normalisation.
#pragma once

#include "heed/kernels/layer_norm.h"
#include "heed/ops/rows.h"

namespace heed {

/// y = gamma (x - mean) / sqrt(variance + eps) + beta over the last axis: x [..., n], gamma, beta [n].
/// Saved: mean and 1 / sqrt(variance + eps) of each row; the backward pass makes xn from them again.
///
///   dgamma += sum dy xn,  dbeta += sum dy,  dx: see kernels/layer_norm.h
template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gamma, Var<T> beta, double eps = 1e-6) {
  Tape<T>& tape = tape_of("layer_norm", x, gamma, beta);
  const Index rows = x.shape().rows(), n = x.shape().row_size();
  require(gamma.shape() == Shape{n} && beta.shape() == Shape{n},
          "[layer_norm] x has rows of {}, gamma has shape {}, beta {}; expected [{}]", n, gamma.shape(), beta.shape(),
          n);
  Cost cost;
  cost.forward = rows * Counts{.mul = 3 * n, .add = 5 * n - 1, .div = 3, .sqrt = 1};
  cost.backward = rows * Counts{.mul = 7 * n, .add = 6 * n - 2, .div = 2} +
                  Counts{.mul = 2 * rows * n, .add = rows * n + 2 * (rows - 1) * n};
  T* const mean = tape.memory(rows);
  T* const scale = tape.memory(rows);
  return tape.record(
      {"layer_norm", cost}, x.shape(), {x, gamma, beta},
      [=](T* y) {
        const T *px = x.data(), *pg = gamma.data(), *pb = beta.data();
        for_row_ranges(rows, 4 * n, [=](Index begin, Index end) {
          kernels::layer_norm_forward(end - begin, n, px + begin * n, pg, pb, eps, y + begin * n, mean + begin,
                                      scale + begin);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pg = gamma.data(), *pdy = dy.data();
        const auto dgamma = tape.target(gamma), dbeta = tape.target(beta);
        if (dgamma || dbeta) {
          T* const sums = tape.memory(2 * n);
          sum_over_row_ranges(
              tape, rows, 2 * n, 2 * n, Update::assign, sums, [=](Index begin, Index end, Update update, T* sum) {
                kernels::layer_norm_parameter_gradients(end - begin, n, px + begin * n, mean + begin, scale + begin,
                                                        pdy + begin * n, update, sum, sum + n);
              });
          for (Index i = 0; i < n && dgamma; ++i) write(dgamma.update, dgamma.data[i], sums[i]);
          for (Index i = 0; i < n && dbeta; ++i) write(dbeta.update, dbeta.data[i], sums[n + i]);
        }
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, 6 * n, [=](Index begin, Index end) {
            kernels::layer_norm_backward(end - begin, n, px + begin * n, pg, mean + begin, scale + begin,
                                         pdy + begin * n, dx.update, dx.data + begin * n);
          });
      });
}

}  // namespace heed
