// Activations, alone and before a linear layer.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = x Phi(x), exactly (kernels/elements/activation.h). dx += dy (Phi(x) + x phi(x)).
template <class T>
Var<T> gelu(Var<T> x);

/// Computes y = max(x, 0). dx += dy where x > 0.
template <class T>
Var<T> relu(Var<T> x);

/// Computes y = x / (1 + exp(-x)). dx += dy s (1 + x (1 - s)) with s the logistic function of x
/// (kernels/elements/activation.h).
template <class T>
Var<T> silu(Var<T> x);

/// Compute approximations of gelu: y = x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) in gelu_tanh(), and
/// y = x / (1 + exp(-1.702 x)) in quick_gelu().
template <class T>
Var<T> gelu_tanh(Var<T> x);
template <class T>
Var<T> quick_gelu(Var<T> x);

/// Compute y = f(x) W^T + b + r for the activation f in the function's name: x [..., I], W [O, I], bias b [O] and
/// residual r [..., O] optional, y [..., O]. The result equals linear(f(x), W, b, r), but f(x) is recomputed in the
/// backward pass instead of saved.
template <class T>
Var<T> gelu_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {});
template <class T>
Var<T> relu_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {});
template <class T>
Var<T> silu_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {});
template <class T>
Var<T> gelu_tanh_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {});
template <class T>
Var<T> quick_gelu_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, Var<T> residual = {});

}  // namespace heed
