// 2-D convolutions (cross-correlations, as usual in the field) of images with one row per pixel, like tokens.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// The grid formed by the rows of an image, and the stride and padding of the windows.
struct ConvGrid {
  Index height = 0, width = 0;
  Index stride = 1;
  Index padding = 0;  ///< zeros on each side, fewer than the window's side

  /// Return the output size for windows of side `kernel`: floor((side + 2 padding - kernel) / stride) + 1; 0 if no
  /// window fits.
  Index out_height(Index kernel) const { return out(height, kernel); }
  Index out_width(Index kernel) const { return out(width, kernel); }

 private:
  Index out(Index side, Index kernel) const {
    const Index room = side + 2 * padding - kernel;
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// Computes y[b, (y, x), o] = bias[o] + sum over c, i, j of weight[o,c,i,j] x[b, (stride y + i - padding,
/// stride x + j - padding), c]: x [B, h w, C], weight [O, C, K, K], bias [O] optional, y [B, h' w', O], pixels in
/// row-major order.
///
/// The windows are the rows of X, gathered a strip at a time: Y = X W^T + b, hence dW += dY^T X and dX = dY W; the dx
/// of a pixel is the sum of dX over the windows that contain it. X is never stored as a whole; the backward pass
/// recomputes it.
template <class T>
Var<T> conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& grid);

/// Computes a convolution per channel: y[b, (y, x), c] = bias[c] + sum over i, j of weight[c,0,i,j] x[b, ..., c].
/// weight [C, 1, K, K].
template <class T>
Var<T> depthwise_conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& grid);

/// Rearranges images [B, C, h, w] as rows of pixels [B, h w, C].
template <class T>
Var<T> pixel_rows(Var<T> images);

}  // namespace heed
