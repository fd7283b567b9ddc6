// Patch embedding: a linear map of each patch of an image, i.e. a convolution whose stride equals its kernel size.
// Dosovitskiy et al., "An image is worth 16x16 words", arXiv:2010.11929v2, Eq. 1.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y[b, n] = W patch(b, n) + bias: x [B, C, H, W], weight [D, C, p, q], bias [D] optional, y [B, N, D] with
/// the N = (H / p) (W / q) patches in row-major order. Saved: the patches as rows, [B N, C p q].
///
///   dW += dy^T patches,  dbias += sum dy,  dx += dy W per patch
template <class T>
Var<T> patch_embedding(Var<T> x, Var<T> weight, Var<T> bias);

}  // namespace heed
