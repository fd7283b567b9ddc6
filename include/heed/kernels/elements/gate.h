// Gating: the logistic function of one tensor times another tensor.
#pragma once

#include "heed/kernels/shared/exp.h"
#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

namespace heed::kernels {

/// Returns 1 / (1 + e^-x); 0, the correct limit, if e^-x overflows.
template <class T>
[[gnu::always_inline]] inline T logistic(T x) {
  return T(1) / (T(1) + exp(-x));
}
inline constexpr Counts logistic_counts{.add = 1, .div = 1, .exp = 1};

/// Returns the update for row r of a gradient. With stride 0, all rows share one row of memory, and their gradients are
/// summed.
template <class T>
Update sum_update(Index r, Matrix<T> gradient) {
  return r > 0 && gradient.stride == 0 ? Update::accumulate : Update::assign;
}

inline namespace reference {

/// Computes out = sigma(q) y, element-wise. out may be y. y may be a single row shared by all rows (stride 0). Fast
/// float: relative error at most 4e-7 + 4e-9 |q|.
template <class T>
void gate_forward(MatrixFor<T> q, MatrixFor<T> y, Matrix<T> out) {
  for (Index r = 0; r < out.rows; ++r)
    for (Index i = 0; i < out.columns; ++i) out(r, i) = logistic(q(r, i)) * y(r, i);
}

/// Computes dy = sigma(q) dout and dq (+)= sigma'(q) y dout = dy y (1 - sigma(q)). dy may be dout. If y is a single
/// shared row, so is dy, which then sums the gradients of all rows. Fast float: dy has the error of gate_forward(); the
/// error of dq, relative to |dy y|, is at most three times as large.
template <class T>
void gate_backward(MatrixFor<T> q, MatrixFor<T> y, MatrixFor<T> dout, Update update, Matrix<T> dq, Matrix<T> dy) {
  for (Index r = 0; r < dq.rows; ++r)
    for (Index i = 0; i < dq.columns; ++i) {
      const T gate = logistic(q(r, i)), gated = gate * dout(r, i);
      write(update, dq(r, i), gated * y(r, i) * (T(1) - gate));
      write(sum_update(r, dy), dy(r, i), gated);
    }
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void gate_forward(Matrix<const float> q, Matrix<const float> y, Matrix<float> out);
void gate_backward(Matrix<const float> q, Matrix<const float> y, Matrix<const float> dout, Update update,
                   Matrix<float> dq, Matrix<float> dy);
#endif

/// Returns the counts for `elements` elements.
inline Counts gate_forward_counts(Index elements) { return elements * (logistic_counts + Counts{.mul = 1}); }

/// Returns the counts for `elements` elements if dy is not shared; a shared dy takes one more addition per element of
/// each row except the first.
inline Counts gate_backward_counts(Index elements, Update update) {
  return elements * (logistic_counts + Counts{.mul = 3, .add = update == Update::assign ? 1 : 2});
}

}  // namespace heed::kernels
