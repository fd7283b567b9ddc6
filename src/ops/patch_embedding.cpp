#include "heed/ops/patch_embedding.h"

#include "linear_parts.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/grids/windows.h"

namespace heed {

template <class T>
Var<T> patch_embedding(Var<T> x, Var<T> weight, Var<T> bias) {
  Tape<T>& tape = tape_of("patch_embedding", x, weight, bias);
  const Shape &xs = x.shape(), &ws = weight.shape();
  require(xs.rank() == 4 && ws.rank() == 4 && ws[2] == ws[3] && ws[1] == xs[1],
          "[patch_embedding] x has shape {}, weight {}; expected [B, C, H, W] and [D, C, p, p]", xs, ws);
  const Index p = ws[2];
  require(xs[2] % p == 0 && xs[3] % p == 0, "[patch_embedding] patches of {}x{} do not divide an image of {}x{}", p, p,
          xs[2], xs[3]);
  require_shape("patch_embedding", "bias", bias, {ws[0]});
  const Index images = xs[0], width = ws[0], taps = xs[1] * p * p;
  const kernels::Windows windows{xs[1], xs[2], xs[3], p, p, 0};
  const Index count = windows.places(), rows = images * count, image_size = xs[1] * xs[2] * xs[3];
  const Matrix<T> patches(tape.memory(rows * taps), rows, taps);
  const Matrix<const T> W(weight.data(), width, taps);
  const kernels::Gemm gemm{tape.pass().execution.products};
  return tape.record(
      {"patch_embedding", linear_cost(rows, taps, width, true, false, tape.wanted(x))}, Shape{images, count, width},
      {x, weight, bias},
      [=](T* y) {
        parallel_for(images, [=, my = Matrix<T>(y, rows, width)](Index image) {
          const T* const from = x.data() + image * image_size;
          const Matrix<T> to = patches.middle_rows(image * count, count);
          kernels::for_each_tap(windows,
                                [=](Index position, Index tap, Index place) { to(place, tap) = from[position]; });
          gemm.add(to, transposed(W), bias.data(), {}, my.middle_rows(image * count, count));
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto db = tape.target(bias)) kernels::column_sums(dy.matrix(), db.update, db.data);
        if (const auto dw = tape.target(weight))
          gemm(transposed(dy.matrix()), patches, dw.update, dw.matrix(width, taps));
        if (const auto dx = tape.target(x)) {
          const Matrix<T> dpatches(tape.memory(rows * taps), rows, taps);
          gemm(dy.matrix(), W, dpatches);
          for (Index image = 0; image < images; ++image)
            kernels::for_each_tap(windows, [&](Index position, Index tap, Index place) {
              write(dx.update, dx.data[image * image_size + position], dpatches(image * count + place, tap));
            });
        }
      });
}

#define INSTANTIATE(T) template Var<T> patch_embedding(Var<T>, Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
