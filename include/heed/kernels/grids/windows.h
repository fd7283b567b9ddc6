// Windows of a 2-D convolution.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

namespace heed::kernels {

/// Geometry of a 2-D convolution of one image of `channels` channels: square windows, `padding` zeros on each side.
struct Windows {
  Index channels = 0, height = 0, width = 0;
  Index kernel = 1, stride = 1, padding = 0;

  Index out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  Index out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  Index places() const { return out_height() * out_width(); }
  Index taps() const { return channels * kernel * kernel; }

  /// The taps of a row or column of windows, at place `out` of an axis of `size` places, that lie on the image; the
  /// others read padding. Tap i reads place `first` + i.
  struct Range {
    Index first, begin, end;
  };
  Range range(Index out, Index size) const {
    const Index first = out * stride - padding;
    return {first, std::clamp<Index>(-first, 0, kernel), std::clamp<Index>(size - first, 0, kernel)};
  }
  Range rows_at(Index out) const { return range(out, height); }
  Range columns_at(Index out) const { return range(out, width); }

  /// Pairs of a window and a place of the image that it covers.
  Index covered() const {
    Index rows = 0, columns = 0;
    for (Index y = 0; y < out_height(); ++y) rows += rows_at(y).end - rows_at(y).begin;
    for (Index x = 0; x < out_width(); ++x) columns += columns_at(x).end - columns_at(x).begin;
    return rows * columns;
  }
};

/// Calls f(input position or -1 where padding is read, tap, place) for each tap (channel, row, column) of each
/// window of an image [channels, height, width], places innermost.
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

/// Calls f(place, row of taps, x, taps, runs): for each window of rows [begin, end) of windows and each row i of its
/// taps: the taps [taps.begin, taps.end) of that row lie on the image from place x on, or none where x is -1. Places
/// count from 0.
template <class F>
void for_each_run(const Windows& w, Index begin, Index end, const F& f) {
  Index place = 0;
  for (Index oy = begin; oy < end; ++oy) {
    const Windows::Range rows = w.rows_at(oy);
    for (Index ox = 0; ox < w.out_width(); ++ox, ++place) {
      const Windows::Range columns = w.columns_at(ox);
      for (Index i = 0; i < w.kernel; ++i) {
        const bool inside = i >= rows.begin && i < rows.end && columns.begin < columns.end;
        f(place, i, inside ? (rows.first + i) * w.width + columns.first + columns.begin : Index{-1}, columns);
      }
    }
  }
}

/// The windows of rows [begin, end) of windows as the rows of a matrix: patches [places, kernel kernel channels], taps
/// (row, column, channel), zero in the padding. image [height * width, channels]. A row of taps is one piece of memory.
template <class T>
void gather_windows(const Windows& w, Index begin, Index end, const std::type_identity_t<T>* image, Matrix<T> patches) {
  const Index C = w.channels;
  for_each_run(w, begin, end, [&](Index place, Index i, Index from, const Windows::Range& taps) {
    T* const to = patches[place] + i * w.kernel * C;
    if (from < 0) return void(std::fill_n(to, w.kernel * C, T(0)));
    std::fill_n(to, taps.begin * C, T(0));
    std::copy_n(image + from * C, (taps.end - taps.begin) * C, to + taps.begin * C);
    std::fill_n(to + taps.end * C, (w.kernel - taps.end) * C, T(0));
  });
}

/// The transpose of gather_windows: image[...] += patches.
template <class T>
void scatter_windows(const Windows& w, Index begin, Index end, MatrixFor<T> patches, T* image) {
  const Index C = w.channels;
  for_each_run(w, begin, end, [&](Index place, Index i, Index to, const Windows::Range& taps) {
    if (to < 0) return;
    const T* const from = patches[place] + (i * w.kernel + taps.begin) * C;
    for (Index c = 0; c < (taps.end - taps.begin) * C; ++c) image[to * C + c] += from[c];
  });
}

/// Of all windows.
inline Counts scatter_windows_counts(const Windows& w) { return {.add = w.covered() * w.channels}; }

}  // namespace heed::kernels
