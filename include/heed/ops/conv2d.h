// 2-D convolutions (cross-correlations, as everybody's) of images whose places are rows, as tokens are.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// The grid that the rows of an image lie on, and how windows go over it.
struct ConvGrid {
  Index height = 0, width = 0;
  Index stride = 1;
  Index padding = 0;  ///< zeros on each side, fewer than a window has places

  /// The places of windows of so many places a side: floor((side + 2 padding - kernel) / stride) + 1, 0 where none
  /// fits.
  Index out_height(Index kernel) const { return out(height, kernel); }
  Index out_width(Index kernel) const { return out(width, kernel); }

 private:
  Index out(Index side, Index kernel) const {
    const Index room = side + 2 * padding - kernel;
    return room < 0 ? 0 : room / stride + 1;
  }
};

/// y[b, (y, x), o] = bias[o] + sum over c, i, j of weight[o,c,i,j] x[b, (stride y + i - padding, stride x + j -
/// padding), c]: x [B, h w, C], weight [O, C, K, K], bias [O] or left out, y [B, h' w', O], places in row-major order.
///
/// With the windows as the rows of X, a few rows of windows at a time: Y = X W^T + b, hence dW += dY^T X, dX = dY W,
/// and dx gathers dX back. X is never whole, and made again rather than kept.
template <class T>
Var<T> conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& grid);

/// The same channel by channel: y[b, (y, x), c] = bias[c] + sum over i, j of weight[c,0,i,j] x[b, ..., c]. weight
/// [C, 1, K, K].
template <class T>
Var<T> depthwise_conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& grid);

/// Images [B, C, h, w] as rows of places [B, h w, C].
template <class T>
Var<T> rows_of_places(Var<T> images);

}  // namespace heed
