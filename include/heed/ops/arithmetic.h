// add, mul, scale, scale_channels: element by element.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// y = a + b, of equal shapes. da += dy, db += dy.
template <class T>
Var<T> add(Var<T> a, Var<T> b);

/// y = a b element by element, of equal shapes. da += b dy, db += a dy.
template <class T>
Var<T> mul(Var<T> a, Var<T> b);

/// y = gamma x + r, channel by channel: x [..., C], gamma [C], r as x or left out. dgamma += sum over rows of x dy,
/// dx += gamma dy, dr += dy. "LayerScale" of Touvron et al., arXiv:2103.17239, Eq. 4.
template <class T>
Var<T> scale_channels(Var<T> x, Var<T> gamma, Var<T> residual = {});

/// y = factor x. dx += factor dy.
template <class T>
Var<T> scale(Var<T> x, double factor);

}  // namespace heed
