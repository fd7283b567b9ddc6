// elu(x) + 1, a positive function: x + 1 for x > 0, exp(x) otherwise.
#pragma once

#include "heed/cost/counts.h"
#include "heed/kernels/shared/exp.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

/// Computes y = elu(x) + 1 for n elements. y may be x. Relative error: a few eps; in fast float the result is 0 for
/// x < -87.33. Clevert, Unterthiner, Hochreiter, "Fast and accurate deep network learning by exponential linear units
/// (ELUs)", arXiv:1511.07289.
template <class T>
void elu_plus_1_forward(Index n, const T* x, T* y) {
  for (Index i = 0; i < n; ++i) {
    const T above = x[i] + T(1), below = exp(x[i]);
    y[i] = x[i] > T(0) ? above : below;
  }
}

/// Returns the counts for n elements.
inline Counts elu_plus_1_forward_counts(Index n) { return n * Counts{.add = 1, .exp = 1, .cmp = 1}; }

/// Computes dx (+)= dy min(y, 1) from y = elu(x) + 1: the derivative is 1 where y > 1, and exp(x) = y elsewhere.
template <class T>
void elu_plus_1_backward(Index n, const T* y, const T* dy, Update update, T* dx) {
  for (Index i = 0; i < n; ++i) write(update, dx[i], dy[i] * (y[i] > T(1) ? T(1) : y[i]));
}

/// Returns the counts for Update::assign.
inline Counts elu_plus_1_backward_counts(Index n) { return n * Counts{.mul = 1, .cmp = 1}; }

}  // namespace heed::kernels
