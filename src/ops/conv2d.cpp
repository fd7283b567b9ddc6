#include "heed/ops/conv2d.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/gemm.h"
#include "heed/kernels/im2col.h"

namespace heed {

template <class T>
Var<T> conv2d(Var<T> x, Var<T> weight, Var<T> bias, const ConvOptions& options) {
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
  cost.backward = images * groups * (product_counts(taps, places, outputs) + kernels::col2im_counts(windows)) +
                  groups * product_counts(outputs, taps, images * places);
  if (bias) cost.backward += groups * outputs * sum_counts(images * places);

  const Matrix<T> X(tape.memory(taps * places), taps, places);
  const auto weight_of = [=](auto* weights, Index g) { return Matrix(weights + g * outputs * taps, outputs, taps); };
  const auto input_of = [=](auto* all, Index image, Index g) { return all + (image * groups + g) * in_size; };
  const auto output_of = [=](auto* all, Index image, Index g) {
    return Matrix(all + (image * groups + g) * out_size, outputs, places);
  };
  return tape.record(
      {"conv2d", cost}, Shape{images, ws[0], windows.out_height(), windows.out_width()}, {x, weight, bias},
      [=](T* y) {
        for (Index image = 0; image < images; ++image)
          for (Index g = 0; g < groups; ++g) {
            const Matrix<T> Y = output_of(y, image, g);
            kernels::im2col(windows, input_of(x.data(), image, g), X);
            for (Index o = 0; o < outputs && bias; ++o) fill(Y.middle_rows(o, 1), bias.data()[g * outputs + o]);
            kernels::gemm(weight_of(weight.data(), g), X, bias ? Update::accumulate : Update::assign, Y);
          }
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dw = tape.target(weight), db = tape.target(bias), dx = tape.target(x);
        if (dx && dx.update == Update::assign) std::fill(dx.data, dx.data + x.size(), T(0));
        for (Index image = 0; image < images; ++image)
          for (Index g = 0; g < groups; ++g) {
            const Matrix<const T> dY = output_of(dy.data(), image, g);
            if (dw) {
              kernels::im2col(windows, input_of(x.data(), image, g), X);
              kernels::gemm(dY, transposed(X), image == 0 ? dw.update : Update::accumulate, weight_of(dw.data, g));
            }
            for (Index o = 0; o < outputs && db; ++o)
              for (Index p = 0; p < places; ++p)
                write(image == 0 && p == 0 ? db.update : Update::accumulate, db.data[g * outputs + o], dY(o, p));
            if (dx) {
              kernels::gemm(transposed(weight_of(weight.data(), g)), dY, X);
              kernels::col2im(windows, X, input_of(dx.data, image, g));
            }
          }
      });
}

#define INSTANTIATE(T) template Var<T> conv2d(Var<T>, Var<T>, Var<T>, const ConvOptions&);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
