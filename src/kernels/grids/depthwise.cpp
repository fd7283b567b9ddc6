// Convolutions process all windows for one vector of channels at a time. For 3 x 3 filters with stride 1 or 2, all nine
// weights or their gradients stay in registers, and up to four adjacent windows share loads of the image: with stride
// 1, six elements of each row instead of twelve. Other filters are read from the cache.
#include "heed/kernels/grids/depthwise.h"

#ifndef HEED_NO_SIMD

#include "heed/kernels/shared/simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// Weights of a vector of channels, and its bias, with which the sums start.
class Filter {
 public:
  /// Reads the taps in reverse order if `flipped`. `bias` may be nullptr.
  Filter(Matrix<const float> W, const float* bias, Index c, bool flipped)
      : bias_(bias ? bias + c : nullptr),
        first_(W[flipped ? W.rows - 1 : 0] + c),
        step_(flipped ? -W.stride : W.stride) {}
  template <class Lanes>
  Vector start(Lanes use) const {
    return bias_ ? use.load(bias_) : hn::Zero(tag);
  }
  /// Returns the weight of tap t, or of the opposite tap if flipped.
  template <class Lanes>
  Vector tap(Lanes use, Index t) const {
    return use.load(first_ + t * step_);
  }

 private:
  const float* bias_;
  const float* first_;
  Index step_;
};

/// Computes y[channels] for the window at column ox of a window row. `rows` are the tap rows inside the image.
template <class Lanes>
HWY_INLINE void any_window(const Windows& w, const Windows::Range& rows, Index ox, Lanes use, Matrix<const float> x,
                           const Filter& filter, Update update, float* y) {
  const Windows::Range columns = w.columns_at(ox);
  Vector even = filter.start(use), odd = hn::Zero(tag);
  for (Index i = rows.begin; i < rows.end; ++i) {
    const float* const from = x.data + ((rows.first + i) * w.width + columns.first) * x.stride;
    Index j = columns.begin;
    for (; j + 1 < columns.end; j += 2) {
      even = hn::MulAdd(use.load(from + j * x.stride), filter.tap(use, i * w.kernel + j), even);
      odd = hn::MulAdd(use.load(from + (j + 1) * x.stride), filter.tap(use, i * w.kernel + j + 1), odd);
    }
    if (j < columns.end) even = hn::MulAdd(use.load(from + j * x.stride), filter.tap(use, i * w.kernel + j), even);
  }
  write(update, use, hn::Add(even, odd), y);
}

/// Adjacent windows of 3 x 3 taps, at columns ox, ox + 1, ... of a window row. x begins at the vector's channels.
struct WindowsOf3 {
  const Windows& w;
  Windows::Range rows;  ///< tap rows inside the image
  Index ox;
  Matrix<const float> x;

  /// For each of `count` windows, calls f(tap, window, x at the tap) for the taps inside the image. `stride` is
  /// w.stride; `inside` means that no column is padding.
  template <int count, int stride, bool inside, class Lanes, class F>
  HWY_INLINE void for_each_tap(Lanes use, const F& f) const {
    const Index first = ox * stride - w.padding;
#pragma GCC unroll 3
    for (int i = 0; i < 3; ++i) {
      if (i < rows.begin || i >= rows.end) continue;
      const float* const row = x.data + ((rows.first + i) * w.width + first) * x.stride;
#pragma GCC unroll 9
      for (int p = 0; p < (count - 1) * stride + 3; ++p) {
        if (!inside && (first + p < 0 || first + p >= w.width)) continue;
        const Vector under = use.load(row + p * x.stride);
#pragma GCC unroll 3
        for (int j = 0; j < 3; ++j)
          if (p >= j && (p - j) % stride == 0 && (p - j) / stride < count) f(3 * i + j, (p - j) / stride, under);
      }
    }
  }
};

/// A range of windows along an axis, [begin, end).
struct Reach {
  Index begin, end;
};

/// Returns the range of windows whose tap `tap` is inside the image, along an axis of `side` positions and `windows`
/// windows.
Reach windows_with_tap(const Windows& w, Index tap, Index side, Index windows) {
  const Index begin = std::max<Index>(0, w.padding - tap + w.stride - 1) / w.stride;
  const Index end = std::max<Index>(0, side + w.padding - tap + w.stride - 1) / w.stride;
  return {begin, std::max(begin, std::min(end, windows))};
}

/// Returns the range of ox for which all columns of the window are inside the image.
Reach whole_columns(const Windows& w) {
  const Reach first = windows_with_tap(w, 0, w.width, w.out_width());
  const Reach last = windows_with_tap(w, w.kernel - 1, w.width, w.out_width());
  return {std::min(first.begin, w.out_width()), last.end};
}

/// Calls f(count, inside, ox) for runs of at most four windows at ox, ox + 1, ... that together cover a window row.
/// `inside` means that all their columns are inside the image. `count` and `inside` are compile-time constants.
template <class F>
HWY_INLINE void for_each_run(Index width, const Reach& whole, const F& f) {
  const auto run = [&](auto count, Index ox) HWY_ATTR {
    if (ox >= whole.begin && ox + count <= whole.end)
      f(count, std::true_type(), ox);
    else
      f(count, std::false_type(), ox);
  };
  Index ox = 0;
  for (; ox + 4 <= width; ox += 4) run(std::integral_constant<int, 4>(), ox);
  if (ox + 2 <= width) run(std::integral_constant<int, 2>(), ox), ox += 2;
  if (ox < width) run(std::integral_constant<int, 1>(), ox);
}

/// Convolves with 3 x 3 taps and a stride of 1 or 2. y begins at the vector's channels.
template <int stride, class Lanes>
HWY_INLINE void convolve_3(const Windows& w, Lanes use, Matrix<const float> x, const Filter& filter, Update update,
                           Matrix<float> y) {
  Vector taps[9];
  for (Index i = 0; i < 9; ++i) taps[i] = filter.tap(use, i);
  const Vector start = filter.start(use);
  const Index height = w.out_height(), width = w.out_width();
  const Reach whole = whole_columns(w);
  for (Index oy = 0; oy < height; ++oy) {
    const Windows::Range rows = w.rows_at(oy);
    for_each_run(width, whole, [&](auto count, auto inside, Index ox) HWY_ATTR {
      Vector sums[count];
      for (int n = 0; n < count; ++n) sums[n] = start;
      WindowsOf3{w, rows, ox, x}.for_each_tap<count, stride, inside>(
          use, [&](int tap, int n, Vector under) HWY_ATTR { sums[n] = hn::MulAdd(under, taps[tap], sums[n]); });
      for (int n = 0; n < count; ++n) write(update, use, sums[n], y[oy * width + ox + n]);
    });
  }
}

/// Computes the gradient of the taps. dy begins at the vector's channels.
template <int stride, class Lanes>
HWY_INLINE void weight_gradient_3(const Windows& w, Lanes use, Matrix<const float> x, Matrix<const float> dy,
                                  Update update, Matrix<float> dW) {
  Vector sums[9];
  for (Vector& sum : sums) sum = hn::Zero(tag);
  const Index height = w.out_height(), width = w.out_width();
  const Reach whole = whole_columns(w);
  for (Index oy = 0; oy < height; ++oy) {
    const Windows::Range rows = w.rows_at(oy);
    for_each_run(width, whole, [&](auto count, auto inside, Index ox) HWY_ATTR {
      Vector d[count];
      for (int n = 0; n < count; ++n) d[n] = use.load(dy[oy * width + ox + n]);
      // Separate from `sums`, so that the multiply-adds of the next run of windows do not wait for those of this run.
      Vector of_these[9];
      for (Vector& sum : of_these) sum = hn::Zero(tag);
      WindowsOf3{w, rows, ox, x}.for_each_tap<count, stride, inside>(
          use, [&](int tap, int n, Vector under) HWY_ATTR { of_these[tap] = hn::MulAdd(under, d[n], of_these[tap]); });
      for (int tap = 0; tap < 9; ++tap) sums[tap] = hn::Add(sums[tap], of_these[tap]);
    });
  }
  for (Index tap = 0; tap < 9; ++tap) write(update, use, sums[tap], dW[tap]);
}

/// Computes the gradients of the taps one by one: each is a sum over the windows in which the tap is inside the image.
void weight_gradient_of_taps(const Windows& w, Matrix<const float> x, Matrix<const float> dy, Update update,
                             Matrix<float> dW) {
  for (Index i = 0; i < w.kernel; ++i) {
    const Reach rows = windows_with_tap(w, i, w.height, w.out_height());
    for (Index j = 0; j < w.kernel; ++j) {
      const Reach columns = windows_with_tap(w, j, w.width, w.out_width());
      for_each_vector(dW.columns, [&](Index c, auto use) {
        Vector even = hn::Zero(tag), odd = hn::Zero(tag);
        for (Index oy = rows.begin; oy < rows.end; ++oy) {
          const float* d = dy[oy * w.out_width() + columns.begin] + c;
          const float* from =
              x[(oy * w.stride + i - w.padding) * w.width + columns.begin * w.stride + j - w.padding] + c;
          const Index count = columns.end - columns.begin, step = w.stride * x.stride;
          Index n = 0;
          for (; n + 1 < count; n += 2, d += 2 * dy.stride, from += 2 * step) {
            even = hn::MulAdd(use.load(d), use.load(from), even);
            odd = hn::MulAdd(use.load(d + dy.stride), use.load(from + step), odd);
          }
          if (n < count) even = hn::MulAdd(use.load(d), use.load(from), even);
        }
        write(update, use, hn::Add(even, odd), dW[i * w.kernel + j] + c);
      });
    }
  }
}

/// Computes the gradient of x, window by window.
void gradient_of_windows(const Windows& w, Matrix<const float> dy, Matrix<const float> W, Update update,
                         Matrix<float> dx) {
  if (update == Update::assign) fill(dx, 0.0F);
  for (Index oy = 0; oy < w.out_height(); ++oy) {
    const Windows::Range rows = w.rows_at(oy);
    for (Index ox = 0; ox < w.out_width(); ++ox) {
      const Windows::Range columns = w.columns_at(ox);
      for_each_vector(dx.columns, [&](Index c, auto use) {
        const Vector d = use.load(dy[oy * w.out_width() + ox] + c);
        for (Index i = rows.begin; i < rows.end; ++i) {
          const float* weight = W[i * w.kernel + columns.begin] + c;
          float* to = dx[(rows.first + i) * w.width + columns.first + columns.begin] + c;
          for (Index j = columns.begin; j < columns.end; ++j, weight += W.stride, to += dx.stride)
            use.store(hn::MulAdd(d, use.load(weight), use.load(to)), to);
        }
      });
    }
  }
}

/// Convolves x with W, or with W reversed if `flipped`.
void convolve(const Windows& w, Matrix<const float> x, Matrix<const float> W, bool flipped, const float* bias,
              Update update, Matrix<float> y) {
  for_each_vector(y.columns, [&](Index c, auto use) {
    const Filter filter(W, bias, c, flipped);
    const Matrix<const float> from = x.middle_columns(c, x.columns - c);
    const Matrix<float> to = y.middle_columns(c, y.columns - c);
    if (w.kernel == 3 && w.stride == 1) return convolve_3<1>(w, use, from, filter, update, to);
    if (w.kernel == 3 && w.stride == 2) return convolve_3<2>(w, use, from, filter, update, to);
    const Index height = w.out_height(), width = w.out_width();
    for (Index oy = 0; oy < height; ++oy)
      for (Index ox = 0; ox < width; ++ox)
        any_window(w, w.rows_at(oy), ox, use, from, filter, update, to[oy * width + ox]);
  });
}

}  // namespace

void depthwise(const Windows& w, Matrix<const float> x, Matrix<const float> W, const float* bias, Update update,
               Matrix<float> y) {
  convolve(w, x, W, false, bias, update, y);
}

// With stride 1 the gradient is a convolution of dy with the reversed filter.
void depthwise_backward(const Windows& w, Matrix<const float> dy, Matrix<const float> W, Update update,
                        Matrix<float> dx) {
  if (w.stride != 1) return gradient_of_windows(w, dy, W, update, dx);
  convolve({w.channels, w.out_height(), w.out_width(), w.kernel, 1, w.kernel - 1 - w.padding}, dy, W, true, nullptr,
           update, dx);
}

void depthwise_weight_gradient(const Windows& w, Matrix<const float> x, Matrix<const float> dy, Update update,
                               Matrix<float> dW) {
  if (w.kernel != 3 || w.stride > 2) return weight_gradient_of_taps(w, x, dy, update, dW);
  for_each_vector(dW.columns, [&](Index c, auto use) {
    const auto from = [c](const auto& m) { return m.middle_columns(c, m.columns - c); };
    if (w.stride == 1)
      weight_gradient_3<1>(w, use, from(x), from(dy), update, from(dW));
    else
      weight_gradient_3<2>(w, use, from(x), from(dy), update, from(dW));
  });
}

}  // namespace heed::kernels

#endif
