// A vector of channels at a time goes through a row of windows. Of 3 x 3 filters all nine weights, or the sums that are
// their gradients, stay in registers meanwhile; larger ones are read from cache.
#include "heed/kernels/depthwise.h"

#ifndef HEED_NO_SIMD

#include "heed/kernels/simd.h"

namespace heed::kernels {

using namespace simd;

namespace {

/// The weights of a vector of channels, and the bias that their sum starts with.
class Filter {
 public:
  /// `bias` may be null.
  Filter(Matrix<const float> W, const float* bias, Index c, bool flipped)
      : bias_(bias ? bias + c : nullptr),
        first_(W[flipped ? W.rows - 1 : 0] + c),
        step_(flipped ? -W.stride : W.stride) {}
  template <class Lanes>
  Vector start(Lanes use) const {
    return bias_ ? use.load(bias_) : hn::Zero(tag);
  }
  /// Of tap t, or with `flipped` of the one opposite of it.
  template <class Lanes>
  Vector tap(Lanes use, Index t) const {
    return use.load(first_ + t * step_);
  }

 private:
  const float* bias_;
  const float* first_;
  Index step_;
};

/// A row of windows of 3 x 3 taps that lie on the image but for its left and right ends. x and y begin at the vector's
/// channels, y in the row.
template <class Lanes>
HWY_INLINE void whole_rows_of_3(const Windows& w, const Windows::Range& rows, Lanes use, Matrix<const float> x,
                                const Filter& filter, Update update, Matrix<float> y) {
  Vector t[9];
  for (Index i = 0; i < 9; ++i) t[i] = filter.tap(use, i);
  const Vector start = filter.start(use);
  const float* const image = x[rows.first * w.width];
  const Index width = w.out_width(), stride = x.stride, row = w.width * stride;
  for (Index ox = 0; ox < width; ++ox) {
    const Windows::Range columns = w.columns_at(ox);
    const float* const from = image + columns.first * stride;
    Vector a = start, b = hn::Zero(tag), c = hn::Zero(tag);
    const auto add = [&](Index j) HWY_ATTR {
      a = hn::MulAdd(use.load(from + j * stride), t[j], a);
      b = hn::MulAdd(use.load(from + row + j * stride), t[3 + j], b);
      c = hn::MulAdd(use.load(from + 2 * row + j * stride), t[6 + j], c);
    };
    if (columns.begin == 0) add(0);
    if (columns.begin <= 1 && columns.end >= 2) add(1);
    if (columns.end == 3) add(2);
    write(update, use, hn::Add(a, hn::Add(b, c)), y[ox]);
  }
}

/// A row of any windows, whose taps of `rows` lie on the image.
template <class Lanes>
void any_row(const Windows& w, const Windows::Range& rows, Lanes use, Matrix<const float> x, const Filter& filter,
             Update update, Matrix<float> y) {
  const Vector start = filter.start(use);
  for (Index ox = 0; ox < w.out_width(); ++ox) {
    const Windows::Range columns = w.columns_at(ox);
    Vector even = start, odd = hn::Zero(tag);
    for (Index i = rows.begin; i < rows.end; ++i) {
      const float* const from = x[(rows.first + i) * w.width + columns.first];
      Index j = columns.begin;
      for (; j + 1 < columns.end; j += 2) {
        even = hn::MulAdd(use.load(from + j * x.stride), filter.tap(use, i * w.kernel + j), even);
        odd = hn::MulAdd(use.load(from + (j + 1) * x.stride), filter.tap(use, i * w.kernel + j + 1), odd);
      }
      if (j < columns.end) even = hn::MulAdd(use.load(from + j * x.stride), filter.tap(use, i * w.kernel + j), even);
    }
    write(update, use, hn::Add(even, odd), y[ox]);
  }
}

/// Windows [begin, end) of an axis.
struct Reach {
  Index begin, end;
};

/// Those of `windows` whose tap `tap` lies on the image, which has `side` places.
Reach windows_with_tap(const Windows& w, Index tap, Index side, Index windows) {
  const Index begin = std::max<Index>(0, w.padding - tap + w.stride - 1) / w.stride;
  const Index end = std::max<Index>(0, side + w.padding - tap + w.stride - 1) / w.stride;
  return {begin, std::max(begin, std::min(end, windows))};
}

/// Tap by tap: the sum over the windows in which it lies on the image.
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

/// Window by window: what it gives the places that it covers.
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

void convolve(const Windows& w, Matrix<const float> x, Matrix<const float> W, bool flipped, const float* bias,
              Update update, Matrix<float> y) {
  const Index width = w.out_width();
  for (Index oy = 0; oy < w.out_height(); ++oy) {
    const Windows::Range rows = w.rows_at(oy);
    const bool whole = w.kernel == 3 && rows.begin == 0 && rows.end == 3;
    for_each_vector(y.columns, [&](Index c, auto use) {
      const Filter filter(W, bias, c, flipped);
      const Matrix<const float> from = x.middle_columns(c, x.columns - c);
      const Matrix<float> to = y.middle_rows(oy * width, width).middle_columns(c, y.columns - c);
      if (whole)
        whole_rows_of_3(w, rows, use, from, filter, update, to);
      else
        any_row(w, rows, use, from, filter, update, to);
    });
  }
}

}  // namespace

void depthwise(const Windows& w, Matrix<const float> x, Matrix<const float> W, const float* bias, Update update,
               Matrix<float> y) {
  convolve(w, x, W, false, bias, update, y);
}

// With stride 1 it is a convolution again: dy with the filter turned round.
void depthwise_backward(const Windows& w, Matrix<const float> dy, Matrix<const float> W, Update update,
                        Matrix<float> dx) {
  if (w.stride != 1) return gradient_of_windows(w, dy, W, update, dx);
  convolve({w.channels, w.out_height(), w.out_width(), w.kernel, 1, w.kernel - 1 - w.padding}, dy, W, true, nullptr,
           update, dx);
}

void depthwise_weight_gradient(const Windows& w, Matrix<const float> x, Matrix<const float> dy, Update update,
                               Matrix<float> dW) {
  if (w.kernel != 3) return weight_gradient_of_taps(w, x, dy, update, dW);
  const Index width = w.out_width(), row = w.width * x.stride;
  for_each_vector(dW.columns, [&](Index c, auto use) {
    Vector s[9];
    for (Vector& sum : s) sum = hn::Zero(tag);
    for (Index oy = 0; oy < w.out_height(); ++oy) {
      const Windows::Range rows = w.rows_at(oy);
      for (Index ox = 0; ox < width; ++ox) {
        const Windows::Range columns = w.columns_at(ox);
        const float* const from = x.data + (rows.first * w.width + columns.first) * x.stride + c;
        const Vector d = use.load(dy[oy * width + ox] + c);
        const auto add = [&](Index i, Index j) HWY_ATTR {
          s[3 * i + j] = hn::MulAdd(d, use.load(from + i * row + j * x.stride), s[3 * i + j]);
        };
        const auto add_row = [&](Index i) HWY_ATTR {
          if (columns.begin == 0) add(i, 0);
          if (columns.begin <= 1 && columns.end >= 2) add(i, 1);
          if (columns.end == 3) add(i, 2);
        };
        if (rows.begin == 0) add_row(0);
        if (rows.begin <= 1 && rows.end >= 2) add_row(1);
        if (rows.end == 3) add_row(2);
      }
    }
    for (Index tap = 0; tap < 9; ++tap) write(update, use, s[tap], dW[tap] + c);
  });
}

}  // namespace heed::kernels

#endif
