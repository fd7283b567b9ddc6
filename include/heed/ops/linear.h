// Linear layers: the product with a weight.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = x W^T + b + r over the last axis: x [..., I], W [O, I], bias b [O] and residual r [..., O] optional,
/// y [..., O].
///
///   dx += dy W,  dW += dy^T x,  db += sum over rows of dy,  dr += dy
template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {});

}  // namespace heed
