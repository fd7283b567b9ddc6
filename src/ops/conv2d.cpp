#include "heed/ops/conv2d.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/grids/depthwise.h"
#include "heed/kernels/products/gemm.h"
#include "linear_parts.h"

namespace heed {

namespace {

/// Returns the windows of a convolution. Throws Error unless x [B, h w, C] matches the grid, weight is [O, `inputs`, K,
/// K], bias is [O] or absent, and stride, padding and windows fit.
template <class T>
kernels::Windows checked_windows(const char* name, Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& g,
                                 Index inputs) {
  const Shape &xs = x.shape(), &ws = weight.shape();
  require(xs.rank() == 3 && xs[1] == g.height * g.width, "[{}] x has shape {}; expected [B, {} * {}, C]", name, xs,
          g.height, g.width);
  require(ws.rank() == 4 && ws[2] == ws[3] && ws[1] == inputs, "[{}] weight has shape {}; expected [O, {}, K, K]", name,
          ws, inputs);
  require(g.stride >= 1 && g.padding >= 0 && g.padding < ws[2],
          "[{}] stride {}, padding {}; expected a stride of at least 1, a padding from 0 to {}", name, g.stride,
          g.padding, ws[2] - 1);
  require(g.out_height(ws[2]) > 0 && g.out_width(ws[2]) > 0,
          "[{}] a {}x{} window does not fit a grid of {}x{} with padding {}", name, ws[2], ws[2], g.height, g.width,
          g.padding);
  require_shape(name, "bias", bias, {ws[0]});
  return {xs[2], g.height, g.width, ws[2], g.stride, g.padding};
}

/// Division of the windows of a batch into strips whose patches fit a core's cache.
struct Strips {
  kernels::Windows windows;
  Index images;
  Index rows = std::clamp<Index>(rows_in_cache(windows.taps()) / windows.out_width(), 1, windows.out_height());
  Index per_image = (windows.out_height() + rows - 1) / rows;

  struct Strip {
    Index image, begin, end;  ///< the image, and its rows of windows [begin, end)
    Index first, places;      ///< first window, numbered over all images, and number of windows
  };
  Strip operator[](Index i) const {
    const Index image = i / per_image, begin = i % per_image * rows, end = std::min(begin + rows, windows.out_height());
    return {image, begin, end, image * windows.places() + begin * windows.out_width(),
            (end - begin) * windows.out_width()};
  }
  Index count() const { return images * per_image; }
  Index image_size() const { return windows.height * windows.width * windows.channels; }

  /// Returns the strip's windows as rows, in memory of the calling thread.
  template <class T>
  Matrix<T> gathered(const Strip& s, const T* x) const {
    const Matrix<T> patches(thread_memory<T>(rows * windows.out_width() * windows.taps()), s.places, windows.taps());
    kernels::gather_windows(windows, s.begin, s.end, x + s.image * image_size(), patches);
    return patches;
  }
};

}  // namespace

template <class T>
Var<T> conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& grid) {
  Tape<T>& tape = tape_of("conv2d", x, weight, bias);
  const Strips strips{checked_windows("conv2d", x, weight, bias, grid, x.shape()[-1]), x.shape()[0]};
  const kernels::Windows w = strips.windows;
  const Index images = strips.images, places = w.places(), taps = w.taps(), outputs = weight.shape()[0];

  Cost cost = linear_cost(images * places, taps, outputs, static_cast<bool>(bias), false, tape.wanted(x));
  if (!w.centred()) {
    if (tape.wanted(x)) cost.backward += images * kernels::scatter_windows_counts(w);
    cost.joins = 0;             // dx is accumulated in place
  } else if (tape.wanted(x)) {  // each element of dx is one sum over taps and outputs
    cost.backward += Counts{.add = images * places * w.channels * (w.kernel * w.kernel - 1)};
  }

  const LinearWeight* const packed = tape.packed(weight);
  // The weight in the order of the elements of a window; packed copies have this order already.
  const Matrix<T> W(packed ? nullptr : tape.memory(outputs * taps), outputs, taps);
  const Index work = strips.rows * w.out_width() * taps * outputs / 8;
  const kernels::Gemm gemm{tape.pass().execution.products};
  const WeightOperand<T> forward{gemm, packed ? &packed->forward : nullptr, transposed(W)};
  return tape.record(
      {"conv2d", cost}, Shape{images, places, outputs}, {x, weight, bias},
      [=](T* y) {
        if (!packed) kernels::gather_weights(weight.value(), W);
        for_row_ranges(strips.count(), work, [=, my = Matrix<T>(y, images * places, outputs)](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) {
            const Strips::Strip s = strips[i];
            forward.add(strips.gathered(s, x.data()), 0, bias ? bias.data() : nullptr, {},
                        my.middle_rows(s.first, s.places));
          }
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> mdy = dy.matrix();
        bias_backward(tape, bias, mdy);
        if (const auto dw = tape.target(weight)) {
          const typename Tape<T>::Scratch scratch(tape, outputs * taps);
          // The product reads its left operand in place and copies the right one, so the windows are on the left.
          const Matrix<T> dW(scratch.data(), taps, outputs);
          sum_over_row_ranges(tape, strips.count(), work, outputs * taps, Update::assign, dW.data,
                              [=](Index begin, Index end, Update update, T* share) {
                                for (Index i = begin; i < end; ++i) {
                                  const Strips::Strip s = strips[i];
                                  gemm(transposed(strips.gathered(s, x.data())), mdy.middle_rows(s.first, s.places),
                                       term_update(i - begin, update), Matrix<T>(share, taps, outputs));
                                }
                              });
          kernels::for_each_weight(weight.shape(), [=](Index to, Index o, Index t, Index c) {
            write(dw.update, dw.data[to], dW(t * w.channels + c, o));
          });
        }
        const auto dx = tape.target(x);
        if (!dx) return;
        // Without a packed copy: memory for the weight [O, taps] or, if windows are centred, for the reversed weight
        // [C, taps of dy].
        const kernels::PackedWeight* const packed_backward = packed ? packed->for_gradients() : nullptr;
        const typename Tape<T>::Scratch scratch(tape, packed_backward ? 0 : outputs * taps);
        if (w.centred()) {
          const Strips around{{outputs, w.height, w.width, w.kernel, w.stride, w.padding}, images};
          const Matrix<T> reversed(scratch.data(), w.channels, around.windows.taps());
          if (!packed_backward) kernels::gather_reversed_weights(weight.value(), reversed);
          const WeightOperand<T> backward{gemm, packed_backward, transposed(reversed)};
          for_row_ranges(around.count(), around.rows * w.width * taps * outputs / 8, [=](Index begin, Index end) {
            for (Index i = begin; i < end; ++i) {
              const Strips::Strip s = around[i];
              backward.product(around.gathered(s, mdy.data), dx.update,
                               Matrix<T>(dx.data + s.first * w.channels, s.places, w.channels));
            }
          });
        } else {
          const Matrix<T> all(scratch.data(), outputs, taps);
          if (!packed_backward) kernels::gather_weights(weight.value(), all);
          const WeightOperand<T> backward{gemm, packed_backward, all};
          for_row_ranges(images, strips.per_image * work, [=](Index begin, Index end) {
            const Index size = strips.image_size();
            if (dx.update == Update::assign) std::fill(dx.data + begin * size, dx.data + end * size, T(0));
            for (Index i = begin * strips.per_image; i < end * strips.per_image; ++i) {
              const Strips::Strip s = strips[i];
              const Matrix<T> dX(thread_memory<T>(strips.rows * w.out_width() * taps), s.places, taps);
              backward.product(mdy.middle_rows(s.first, s.places), Update::assign, dX);
              kernels::scatter_windows(w, s.begin, s.end, dX, dx.data + s.image * size);
            }
          });
        }
      });
}

template <class T>
Var<T> depthwise_conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvGrid& grid) {
  Tape<T>& tape = tape_of("depthwise_conv2d", x, weight, bias);
  const kernels::Windows w = checked_windows("depthwise_conv2d", x, weight, bias, grid, 1);
  const Index images = x.shape()[0], channels = w.channels, places = w.places(), taps = w.kernel * w.kernel;
  require(weight.shape()[0] == channels, "[depthwise_conv2d] weight has shape {}; expected [{}, 1, K, K]",
          weight.shape(), channels);
  Cost cost;
  cost.forward = images * kernels::depthwise_counts(w, static_cast<bool>(bias));
  cost.backward = images * kernels::depthwise_weight_gradient_counts(w) + Counts{.add = (images - 1) * taps * channels};
  if (bias) cost.backward += kernels::column_sums_counts(images * places, channels);
  if (tape.wanted(x)) cost.backward += images * kernels::depthwise_backward_counts(w);
  cost.joins = 0;  // dx is accumulated in place
  cost.forward_contractions = images * product_contractions(places, channels, taps);
  cost.backward_contractions = (tape.wanted(x) ? 2 : 1) * cost.forward_contractions;

  const Matrix<T> W(tape.memory(taps * channels), taps, channels);
  const Index in_size = w.height * w.width * channels, out_size = places * channels;
  const auto image_of = [=](auto* all, Index image) {
    return Matrix(all + image * in_size, w.height * w.width, channels);
  };
  const auto result_of = [=](auto* all, Index image) { return Matrix(all + image * out_size, places, channels); };
  return tape.record(
      {"depthwise_conv2d", cost}, Shape{images, places, channels}, {x, weight, bias},
      [=](T* y) {
        kernels::for_each_weight(weight.shape(), [=, all = weight.data()](Index from, Index channel, Index t, Index) {
          W(t, channel) = all[from];
        });
        for_row_ranges(images, out_size * taps, [=](Index begin, Index end) {
          for (Index i = begin; i < end; ++i)
            kernels::depthwise(w, image_of(x.data(), i), W, bias ? bias.data() : nullptr, Update::assign,
                               result_of(y, i));
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        bias_backward(tape, bias, dy.matrix());
        if (const auto dw = tape.target(weight)) {
          const typename Tape<T>::Scratch scratch(tape, taps * channels);
          const Matrix<T> dW(scratch.data(), taps, channels);
          sum_over_row_ranges(tape, images, out_size * taps, taps * channels, Update::assign, dW.data,
                              [=](Index begin, Index end, Update update, T* share) {
                                for (Index i = begin; i < end; ++i)
                                  kernels::depthwise_weight_gradient(w, image_of(x.data(), i), result_of(dy.data(), i),
                                                                     term_update(i - begin, update),
                                                                     Matrix<T>(share, taps, channels));
                              });
          kernels::for_each_weight(weight.shape(), [=](Index to, Index channel, Index t, Index) {
            write(dw.update, dw.data[to], dW(t, channel));
          });
        }
        if (const auto dx = tape.target(x))
          for_row_ranges(images, out_size * taps, [=](Index begin, Index end) {
            for (Index i = begin; i < end; ++i)
              kernels::depthwise_backward(w, result_of(dy.data(), i), W, dx.update, image_of(dx.data, i));
          });
      });
}

template <class T>
Var<T> pixel_rows(Var<T> images) {
  Tape<T>& tape = tape_of("pixel_rows", images);
  const Shape& s = images.shape();
  require(s.rank() == 4, "[pixel_rows] the images have shape {}; expected [B, C, h, w]", s);
  const Index channels = s[1], places = s[2] * s[3];
  // Calls f(index in `images`, index in y) for each element.
  const auto each = [=, count = s[0]](const auto& f) {
    for (Index image = 0; image < count; ++image)
      for (Index c = 0; c < channels; ++c)
        for (Index p = 0; p < places; ++p) f((image * channels + c) * places + p, (image * places + p) * channels + c);
  };
  return tape.record(
      {"pixel_rows", {}}, Shape{s[0], places, channels}, {images},
      [=](T* y) { each([=, from = images.data()](Index i, Index row) { y[row] = from[i]; }); },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(images))
          each([=](Index i, Index row) { write(dx.update, dx.data[i], dy.data()[row]); });
      });
}

#define INSTANTIATE(T)                                                       \
  template Var<T> conv2d(Var<T>, Var<T>, Var<T>, const ConvGrid&);           \
  template Var<T> depthwise_conv2d(Var<T>, Var<T>, Var<T>, const ConvGrid&); \
  template Var<T> pixel_rows(Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
