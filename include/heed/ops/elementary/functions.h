// Elementwise functions: exp, log, sqrt, pow, abs, tanh, sigmoid, maximum, where. relu is in ops/activation.h.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = exp(x). dx += y dy.
template <class T>
Var<T> exp(Var<T> x);

/// Computes y = log(x), the natural logarithm. dx += dy / x.
template <class T>
Var<T> log(Var<T> x);

/// Computes y = sqrt(x). dx += dy / (2 y).
template <class T>
Var<T> sqrt(Var<T> x);

/// Computes y = x^p for a constant p. dx += p x^(p-1) dy, and 0 for p = 0.
template <class T>
Var<T> pow(Var<T> x, double p);

/// Computes y = |x|. dx += sign(x) dy, and 0 at x = 0.
template <class T>
Var<T> abs(Var<T> x);

/// Computes y = tanh(x). dx += (1 - y^2) dy.
template <class T>
Var<T> tanh(Var<T> x);

/// Computes y = 1 / (1 + exp(-x)). dx += y (1 - y) dy.
template <class T>
Var<T> sigmoid(Var<T> x);

/// Computes y = max(a, b) elementwise, with broadcasting (ops/elementary/arithmetic.h). The larger operand receives the
/// gradient dy; where they are equal, each receives half.
template <class T>
Var<T> maximum(Var<T> a, Var<T> b);

/// Computes y = a where the condition is not 0, and b elsewhere, with broadcasting of all three. da += dy and db += dy
/// at the elements taken from each; the condition has no gradient. For a mask, pass tape.constant(mask.view()).
template <class T>
Var<T> where(Var<T> condition, Var<T> a, Var<T> b);

}  // namespace heed
