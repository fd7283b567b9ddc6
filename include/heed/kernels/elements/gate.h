// Gating: the logistic function of one tensor times another.
#pragma once

#include "heed/kernels/shared/exp.h"
#include "heed/base/matrix.h"
#include "heed/cost/counts.h"
#include "heed/kernels/shared/update.h"

#include <cmath>

namespace heed::kernels {

/// 1 / (1 + e^-x); where e^-x overflows this is the correct 0.
template <class T>
[[gnu::always_inline]] inline T logistic(T x) {
  return T(1) / (T(1) + exp(-x));
}
inline constexpr Counts logistic_counts{.add = 1, .div = 1, .exp = 1};

/// How to write row r of a gradient. Where the matrix is one row for all, the gradients of all rows add up.
template <class T>
Update sum_update(Index r, Matrix<T> gradient) {
  return r > 0 && gradient.stride == 0 ? Update::accumulate : Update::assign;
}

namespace reference {

/// out = sigma(q) y, element-wise. out may be y. y may be one row for all, with stride 0. Fast float: relative error at
/// most 4e-7 + 4e-9 |q|.
template <class T>
void gate_forward(MatrixFor<T> q, MatrixFor<T> y, Matrix<T> out) {
  for (Index r = 0; r < out.rows; ++r)
    for (Index i = 0; i < out.columns; ++i) out(r, i) = logistic(q(r, i)) * y(r, i);
}

/// dy = sigma(q) dout and dq (+)= sigma'(q) y dout = dy y (1 - sigma(q)). dy may be dout. Where y is one row for all,
/// dy is too, their sum. Fast float: the error of dy as above, that of dq relative to |dy y| at most three times as
/// much.
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

using reference::gate_backward, reference::gate_forward;
#ifndef HEED_NO_SIMD
void gate_forward(Matrix<const float> q, Matrix<const float> y, Matrix<float> out);
void gate_backward(Matrix<const float> q, Matrix<const float> y, Matrix<const float> dout, Update update,
                   Matrix<float> dq, Matrix<float> dy);
#endif

inline Counts gate_forward_counts(Index numbers) { return numbers * (logistic_counts + Counts{.mul = 1}); }

/// Of so many numbers; where dy is a sum, one addition more for each, except those of the first row.
inline Counts gate_backward_counts(Index numbers, Update update) {
  return numbers * (logistic_counts + Counts{.mul = 3, .add = update == Update::assign ? 1 : 2});
}

}  // namespace heed::kernels
