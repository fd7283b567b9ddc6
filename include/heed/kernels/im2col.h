// Convolution windows as the columns of a matrix, so that a convolution is a matrix product.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

namespace heed::kernels {

/// Geometry of a 2-D convolution of one image: input [channels, height, width], square windows.
struct Windows {
  Index channels = 0, height = 0, width = 0;
  Index kernel = 1, stride = 1, padding = 0;

  Index out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  Index out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  Index places() const { return out_height() * out_width(); }
  Index taps() const { return channels * kernel * kernel; }
};

/// Calls f(input position or -1 where padding is read, tap, place) for each tap (channel, row, column) of each
/// window, places innermost.
template <class F>
void for_each_tap(const Windows& w, const F& f) {
  Index tap = 0;
  for (Index c = 0; c < w.channels; ++c)
    for (Index i = 0; i < w.kernel; ++i)
      for (Index j = 0; j < w.kernel; ++j, ++tap) {
        Index place = 0;
        for (Index oy = 0; oy < w.out_height(); ++oy)
          for (Index ox = 0; ox < w.out_width(); ++ox, ++place) {
            const Index y = oy * w.stride + i - w.padding, x = ox * w.stride + j - w.padding;
            const bool inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
            f(inside ? (c * w.height + y) * w.width + x : Index{-1}, tap, place);
          }
      }
}

/// columns[tap, place] = the input under that tap of that window, zero in the padding.
template <class T>
void im2col(const Windows& w, const std::type_identity_t<T>* input, Matrix<T> columns) {
  for_each_tap(w, [=](Index from, Index tap, Index place) { columns(tap, place) = from < 0 ? T(0) : input[from]; });
}

/// The transpose of im2col: input[...] += columns[tap, place].
template <class T>
void col2im(const Windows& w, MatrixFor<T> columns, T* input) {
  T padding(0);
  for_each_tap(w, [&](Index to, Index tap, Index place) { (to < 0 ? padding : input[to]) += columns(tap, place); });
}

/// One addition per tap and place, padding included.
inline Counts col2im_counts(const Windows& w) { return {.add = w.taps() * w.places()}; }

}  // namespace heed::kernels
