// Layer normalisation, alone and before a linear layer.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = gamma (x - mean) / sqrt(variance + eps) + beta over the last axis: x [..., n], gamma, beta [n].
///
///   dgamma += sum over rows of dy xn,  dbeta += sum over rows of dy,  dx: see kernels/rows/layer_norm.h
template <class T>
Var<T> layer_norm(Var<T> x, Var<T> gamma, Var<T> beta, double eps = 1e-6);

/// Computes y = layer_norm(x) W^T + b + r: x [..., I], W [O, I], bias b [O] and residual r [..., O] optional, y [...,
/// O]. Equals linear(layer_norm(x), W, b, r), but does not save layer_norm(x): the backward pass recomputes it.
template <class T>
Var<T> layer_norm_linear(Var<T> x, Var<T> gamma, Var<T> beta, Var<T> weight, Var<T> bias = {}, Var<T> residual = {},
                         double eps = 1e-6);

}  // namespace heed
