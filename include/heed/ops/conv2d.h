// 2-D convolution (cross-correlation, as everybody's conv2d) with groups, stride and padding.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

struct ConvOptions {
  Index stride = 1;
  Index padding = 0;  ///< zeros on each side
  Index groups = 1;   ///< output channels of a group see the input channels of that group only
};

/// y[b,o] = bias[o] + sum over c, i, j of weight[o,c,i,j] x[b, c, stride y + i - padding, stride x + j - padding].
/// x [B, C, H, W], weight [O, C / groups, K, K], bias [O] or left out, y [B, O, H', W'] with
/// H' = floor((H + 2 padding - K) / stride) + 1.
///
/// Image by image and group by group: with X the windows as columns (im2col), Y = W X + b, hence
/// dW += dY X^T, dX = W^T dY, and dx gathers dX back (col2im). X is made again rather than kept.
template <class T>
Var<T> conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvOptions& options = {});

}  // namespace heed
