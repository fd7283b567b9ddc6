// Depth-wise convolution: a separate filter for each channel.
#pragma once

#include "heed/kernels/shared/update.h"
#include "heed/kernels/grids/windows.h"

namespace heed::kernels {

namespace detail {

/// Calls f(window, tap, position) for each tap of each window; the position in the image is -1 in the padding.
template <class F>
void for_each_place(const Windows& w, const F& f) {
  for (Index oy = 0; oy < w.out_height(); ++oy)
    for (Index ox = 0; ox < w.out_width(); ++ox)
      for (Index i = 0; i < w.kernel; ++i)
        for (Index j = 0; j < w.kernel; ++j) {
          const Index y = oy * w.stride + i - w.padding, x = ox * w.stride + j - w.padding;
          const bool inside = y >= 0 && y < w.height && x >= 0 && x < w.width;
          f(oy * w.out_width() + ox, i * w.kernel + j, inside ? y * w.width + x : Index{-1});
        }
}

}  // namespace detail

inline namespace reference {

/// Computes y[p,c] (+)= bias[c] + sum over taps of W[tap,c] x[position of the tap,c], where x is zero in the padding. x
/// [height * width, C], W [kernel * kernel, C], bias [C] or nullptr, y [windows, C]. y must not overlap anything.
/// Error: at most (kernel^2 + 4) eps relative to sum |W||x|, |bias| and the previous |y|.
template <class T>
void depthwise(const Windows& w, MatrixFor<T> x, MatrixFor<T> W, const std::type_identity_t<T>* bias, Update update,
               Matrix<T> y) {
  detail::for_each_place(w, [&](Index place, Index tap, Index from) {
    for (Index c = 0; c < y.columns; ++c) {
      const T product = W(tap, c) * (from < 0 ? T(0) : x(from, c));
      write(term_update(tap, update), y(place, c), tap == 0 && bias ? product + bias[c] : product);
    }
  });
}

/// Computes the gradient with respect to x, summed over all windows and taps: dx[position of the tap,c] (+)= W[tap,c]
/// dy[p,c].
template <class T>
void depthwise_backward(const Windows& w, MatrixFor<T> dy, MatrixFor<T> W, Update update, Matrix<T> dx) {
  if (update == Update::assign) fill(dx, T(0));
  T padding(0);
  detail::for_each_place(w, [&](Index place, Index tap, Index to) {
    for (Index c = 0; c < dx.columns; ++c) (to < 0 ? padding : dx(to, c)) += W(tap, c) * dy(place, c);
  });
}

/// Computes the gradient with respect to W: dW[tap,c] (+)= sum over windows of dy[p,c] x[position of the tap,c]. Fast
/// float ignores non-finite gradients at taps in the padding.
template <class T>
void depthwise_weight_gradient(const Windows& w, MatrixFor<T> x, MatrixFor<T> dy, Update update, Matrix<T> dW) {
  detail::for_each_place(w, [&](Index place, Index tap, Index from) {
    for (Index c = 0; c < dW.columns; ++c)
      write(term_update(place, update), dW(tap, c), dy(place, c) * (from < 0 ? T(0) : x(from, c)));
  });
}

}  // namespace reference

#ifndef HEED_NO_SIMD
/// Fast versions for float.
void depthwise(const Windows& w, Matrix<const float> x, Matrix<const float> W, const float* bias, Update update,
               Matrix<float> y);
void depthwise_backward(const Windows& w, Matrix<const float> dy, Matrix<const float> W, Update update,
                        Matrix<float> dx);
void depthwise_weight_gradient(const Windows& w, Matrix<const float> x, Matrix<const float> dy, Update update,
                               Matrix<float> dW);
#endif

/// Returns the counts for Update::assign; accumulating takes one more addition per element.
inline Counts depthwise_counts(const Windows& w, bool bias) {
  return product_counts(w.places(), w.channels, w.kernel * w.kernel) + Counts{.add = bias * w.places() * w.channels};
}
inline Counts depthwise_backward_counts(const Windows& w) {
  const Index terms = w.places() * w.taps();
  return {.mul = terms, .add = terms};
}
inline Counts depthwise_weight_gradient_counts(const Windows& w) {
  return product_counts(w.kernel * w.kernel, w.channels, w.places());
}

}  // namespace heed::kernels
