// Elementwise arithmetic: add, mul, scale, scale_channels.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = a + b for equal shapes. da += dy, db += dy.
template <class T>
Var<T> add(Var<T> a, Var<T> b);

/// Computes y = a b elementwise for equal shapes. da += b dy, db += a dy.
template <class T>
Var<T> mul(Var<T> a, Var<T> b);

/// Computes y = gamma x + r per channel ("LayerScale" of Touvron et al., arXiv:2103.17239, Eq. 4): x [..., C], gamma
/// [C], residual r shaped as x, optional. dgamma += sum over rows of x dy, dx += gamma dy, dr += dy.
template <class T>
Var<T> scale_channels(Var<T> x, Var<T> gamma, Var<T> residual = {});

/// Computes y = factor x. dx += factor dy.
template <class T>
Var<T> scale(Var<T> x, double factor);

}  // namespace heed
