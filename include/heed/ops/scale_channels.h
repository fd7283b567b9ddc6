// Scaling of channels, with a residual.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = gamma x + r per channel ("LayerScale" of Touvron et al., arXiv:2103.17239, Eq. 4): x [..., C], gamma
/// [C], residual r shaped as x, optional. dgamma += sum over rows of x dy, dx += gamma dy, dr += dy.
template <class T>
Var<T> scale_channels(Var<T> x, Var<T> gamma, Var<T> residual = {});

}  // namespace heed
