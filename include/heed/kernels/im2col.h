// Convolution windows as the columns of a matrix, so that a convolution is a matrix product.
#pragma once

#include "heed/base/tensor.h"

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

/// columns[tap, place] = the input under that tap of that window, zero in the padding. Counts nothing.
template <class T>
void im2col(const Windows& w, const T* input, T* columns) {
  const Index places = w.places();
  for_each_tap(
      w, [=](Index from, Index tap, Index place) { columns[tap * places + place] = from < 0 ? T(0) : input[from]; });
}

/// The transpose of im2col: input[...] += columns[tap, place]. Counts one add per tap and place, padding included.
template <class T>
void col2im(const Windows& w, const T* columns, T* input) {
  const Index places = w.places();
  T padding(0);
  for_each_tap(
      w, [&](Index to, Index tap, Index place) { (to < 0 ? padding : input[to]) += columns[tap * places + place]; });
}

}  // namespace heed::kernels
