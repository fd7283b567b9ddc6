// Gating: the logistic function of one tensor times another.
#pragma once

#include "heed/kernels/exp.h"
#include "heed/kernels/update.h"
#include "heed/base/tensor.h"

#include <cmath>

namespace heed::kernels {

/// 1 / (1 + e^-x); where e^-x overflows this is the correct 0. Counts 1 add, 1 exp, 1 div.
template <class T>
[[gnu::always_inline]] inline T logistic(T x) {
  return T(1) / (T(1) + exp(-x));
}

/// out = sigma(q) y, element-wise. out may be y. Counts 1 mul, 1 add, 1 exp, 1 div each.
template <class T>
void gate_forward(Index n, const T* q, const T* y, T* out) {
  for (Index i = 0; i < n; ++i) out[i] = logistic(q[i]) * y[i];
}

/// dy = sigma(q) dout and dq (+)= sigma'(q) y dout = dy y (1 - sigma(q)). dy may be dout.
/// Counts 3 mul, 2 add, 1 exp, 1 div each, 1 add more to accumulate.
template <class T>
void gate_backward(Index n, const T* q, const T* y, const T* dout, Update update, T* dq, T* dy) {
  for (Index i = 0; i < n; ++i) {
    const T gate = logistic(q[i]), gated = gate * dout[i];
    write(update, dq[i], gated * y[i] * (T(1) - gate));
    dy[i] = gated;
  }
}

#ifndef HEED_REFERENCE
void gate_forward(Index n, const float* q, const float* y, float* out);
void gate_backward(Index n, const float* q, const float* y, const float* dout, Update update, float* dq, float* dy);
#endif

}  // namespace heed::kernels
