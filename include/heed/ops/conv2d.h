// 2-D convolution (cross-correlation, as everybody's conv2d) with groups, stride and padding.
#pragma once

#include "heed/kernels/gemm.h"
#include "heed/kernels/im2col.h"
#include "heed/ops/rows.h"

namespace heed {

struct ConvOptions {
  Index stride = 1;
  Index padding = 0;  ///< zeros on each side
  Index groups = 1;   ///< output channels of a group see the input channels of that group only
};

/// y[b,o] = bias[o] + sum over c, i, j of weight[o,c,i,j] x[b, c, stride y + i - padding, stride x + j - padding].
/// x [B, C, H, W], weight [O, C / groups, K, K], bias [O] or left out, y [B, O, H', W'] with
/// H' = floor((H + 2 padding - K) / stride) + 1.
///
/// Image by image and group by group: with X the windows as columns (im2col), Y = W X + b, hence
/// dW += dY X^T, dX = W^T dY, and dx gathers dX back (col2im). X is made again rather than kept.
template <class T>
Var<T> conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvOptions& options = {}) {
  Tape<T>& tape = tape_of("conv2d", x, weight, bias);
  const Shape &xs = x.shape(), &ws = weight.shape();
  const Index groups = options.groups;
  require(xs.rank() == 4 && ws.rank() == 4 && ws[2] == ws[3],
          "[conv2d] x has shape {}, weight {}; expected [B, C, H, W] and [O, C / groups, K, K]", xs, ws);
  require(options.stride >= 1 && options.padding >= 0 && groups >= 1,
          "[conv2d] stride {}, padding {}, groups {}; expected at least 1, 0 and 1", options.stride, options.padding,
          groups);
  require(xs[1] % groups == 0 && ws[0] % groups == 0 && ws[1] == xs[1] / groups,
          "[conv2d] {} input and {} output channels in {} groups do not fit weight {}", xs[1], ws[0], groups, ws);
  require(xs[2] + 2 * options.padding >= ws[2] && xs[3] + 2 * options.padding >= ws[2],
          "[conv2d] a {}x{} window does not fit an image of {}x{} with padding {}", ws[2], ws[2], xs[2], xs[3],
          options.padding);
  require(!bias || bias.shape() == Shape{ws[0]}, "[conv2d] bias has shape {}; expected [{}]",
          bias ? bias.shape() : Shape{}, ws[0]);

  const Index images = xs[0], outputs = ws[0] / groups;
  const kernels::Windows windows{ws[1], xs[2], xs[3], ws[2], options.stride, options.padding};
  const Index places = windows.places(), taps = windows.taps();
  const Index in_size = windows.channels * windows.height * windows.width, out_size = outputs * places;

  Cost cost;
  cost.forward = images * groups * (product_counts(outputs, places, taps) + Counts{.add = bias ? out_size : 0});
  cost.forward_contractions = images * groups * product_contractions(outputs, places, taps);
  cost.backward_contractions = 2 * cost.forward_contractions;
  // dX and its gathering; dW and db, whose sums run over the places of all images.
  cost.backward =
      images * groups * (product_counts(taps, places, outputs) + Counts{.add = taps * places}) +
      groups * (Counts{.mul = outputs * taps * places * images, .add = outputs * taps * (places * images - 1)} +
                Counts{.add = bias ? outputs * (places * images - 1) : 0});

  T* const columns = tape.memory(taps * places);
  const Matrix<T> X(columns, taps, places);
  const auto weight_of = [=](Index g) {
    return Matrix<const T>(weight.data() + g * outputs * taps, outputs, taps);
  };
  return tape.record(
      {"conv2d", cost}, Shape{images, ws[0], windows.out_height(), windows.out_width()}, {x, weight, bias},
      [=](T* y) {
        for (Index image = 0; image < images; ++image)
          for (Index g = 0; g < groups; ++g) {
            kernels::im2col(windows, x.data() + (image * groups + g) * in_size, columns);
            T* const out = y + (image * groups + g) * out_size;
            for (Index o = 0; o < outputs && bias; ++o)
              std::fill(out + o * places, out + (o + 1) * places, bias.data()[g * outputs + o]);
            kernels::gemm(weight_of(g), X, bias ? Update::accumulate : Update::assign, Matrix<T>(out, outputs, places));
          }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dw = tape.target(weight), db = tape.target(bias), dx = tape.target(x);
        if (dx && dx.update == Update::assign) std::fill(dx.data, dx.data + x.size(), T(0));
        for (Index image = 0; image < images; ++image)
          for (Index g = 0; g < groups; ++g) {
            const T* const dout = dy.data() + (image * groups + g) * out_size;
            const Matrix<const T> dY(dout, outputs, places);
            if (dw) {
              kernels::im2col(windows, x.data() + (image * groups + g) * in_size, columns);
              kernels::gemm(dY, transposed(X), image == 0 ? dw.update : Update::accumulate,
                            Matrix<T>(dw.data + g * outputs * taps, outputs, taps));
            }
            for (Index o = 0; o < outputs && db; ++o)
              for (Index p = 0; p < places; ++p)
                write(image == 0 && p == 0 ? db.update : Update::accumulate, db.data[g * outputs + o],
                      dout[o * places + p]);
            if (dx) {
              kernels::gemm(transposed(weight_of(g)), dY, X);
              kernels::col2im(windows, columns, dx.data + (image * groups + g) * in_size);
            }
          }
      });
}

}  // namespace heed
