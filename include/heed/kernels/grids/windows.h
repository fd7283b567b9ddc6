// Geometry of a 2-D convolution.
#pragma once

#include "heed/base/matrix.h"
#include "heed/cost/counts.h"

namespace heed::kernels {

/// Square windows of a 2-D convolution of one image of `channels` channels, padded by `padding` zeros on each side.
struct Windows {
  Index channels = 0, height = 0, width = 0;
  Index kernel = 1, stride = 1, padding = 0;

  Index out_height() const { return (height + 2 * padding - kernel) / stride + 1; }
  Index out_width() const { return (width + 2 * padding - kernel) / stride + 1; }
  Index places() const { return out_height() * out_width(); }
  Index taps() const { return channels * kernel * kernel; }

  /// The taps of a window along one axis. Tap i reads position first + i; taps [begin, end) are inside the image, and
  /// the others read padding. range() returns the taps of window `out` on an axis of `size` positions.
  struct Range {
    Index first, begin, end;
  };
  Range range(Index out, Index size) const {
    const Index first = out * stride - padding;
    return {first, std::clamp<Index>(-first, 0, kernel), std::clamp<Index>(size - first, 0, kernel)};
  }
  Range rows_at(Index out) const { return range(out, height); }
  Range columns_at(Index out) const { return range(out, width); }

  /// Returns true if each pixel has a window centred on it. Then dx is the convolution of dy with the reversed weights:
  /// dx(p) = sum over taps t of W(-t)^T dy(p + t).
  bool centred() const { return stride == 1 && 2 * padding == kernel - 1; }

  /// Returns the number of pairs of a window and an image position inside it.
  Index covered() const {
    Index rows = 0, columns = 0;
    for (Index y = 0; y < out_height(); ++y) rows += rows_at(y).end - rows_at(y).begin;
    for (Index x = 0; x < out_width(); ++x) columns += columns_at(x).end - columns_at(x).begin;
    return rows * columns;
  }
};

/// Calls f(input position, tap, window) for each tap (channel, row, column) of each window of an image
/// [channels, height, width], windows innermost. The position is -1 in the padding.
template <class F>
void for_each_tap(const Windows& w, const F& f) {
  Index tap = 0;
  for (Index c = 0; c < w.channels; ++c)
    for (Index i = 0; i < w.kernel; ++i)
      for (Index j = 0; j < w.kernel; ++j, ++tap) {
        Index window = 0;
        for (Index oy = 0; oy < w.out_height(); ++oy)
          for (Index ox = 0; ox < w.out_width(); ++ox, ++window) {
            const Index y = oy * w.stride + i - w.padding, x = ox * w.stride + j - w.padding;
            const bool inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
            f(inside ? (c * w.height + y) * w.width + x : Index{-1}, tap, window);
          }
      }
}

/// Calls f(window, tap row i, position, columns) for each window of the window rows [begin, end) and each of its tap
/// rows. The taps [columns.begin, columns.end) of the row read the image from `position`; position is -1 if the whole
/// row is padding. Windows are numbered from 0 at row `begin`.
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

/// Calls f(index in W [O, C, K, K], output, tap, channel) for all weights, one cache line of outputs at a time, since
/// outputs are contiguous in the result of gather_reversed_weights().
template <class F>
void for_each_weight(const Shape& w, const F& f) {
  constexpr Index line = 16;
  const Index outputs = w[0], channels = w[1], taps = w[2] * w[3];
  for (Index first = 0; first < outputs; first += line)
    for (Index c = 0; c < channels; ++c)
      for (Index t = 0; t < taps; ++t)
        for (Index o = first; o < std::min(first + line, outputs); ++o) f((o * channels + c) * taps + t, o, t, c);
}

/// Copies weights [O, C, K, K] to the rows of W [O, K K C], in the order of gather_windows().
template <class T>
void gather_weights(View<const std::type_identity_t<T>> weight, Matrix<T> W) {
  for_each_weight(weight.shape(), [=, channels = weight.shape()[1]](Index from, Index o, Index t, Index c) {
    W(o, t * channels + c) = weight.data()[from];
  });
}

/// Copies weights [O, C, K, K] to the rows of W [C, K K O] with taps reversed: the weights of dx as a convolution of
/// dy.
template <class T>
void gather_reversed_weights(View<const std::type_identity_t<T>> weight, Matrix<T> W) {
  const Index outputs = weight.shape()[0], last = weight.shape()[2] * weight.shape()[3] - 1;
  for_each_weight(weight.shape(),
                  [=](Index from, Index o, Index t, Index c) { W(c, (last - t) * outputs + o) = weight.data()[from]; });
}

/// Copies the windows of the window rows [begin, end) to the rows of patches [windows, kernel kernel channels], taps
/// (row, column, channel), zero in the padding. image [height * width, channels]. Each tap row is contiguous in memory.
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

/// Adds patches to the image positions that gather_windows() copies them from.
template <class T>
void scatter_windows(const Windows& w, Index begin, Index end, MatrixFor<T> patches, T* image) {
  const Index C = w.channels;
  for_each_run(w, begin, end, [&](Index place, Index i, Index to, const Windows::Range& taps) {
    if (to < 0) return;
    const T* const from = patches[place] + (i * w.kernel + taps.begin) * C;
    for (Index c = 0; c < (taps.end - taps.begin) * C; ++c) image[to * C + c] += from[c];
  });
}

/// Returns the counts for all windows.
inline Counts scatter_windows_counts(const Windows& w) { return {.add = w.covered() * w.channels}; }

}  // namespace heed::kernels
