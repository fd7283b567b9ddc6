#include "heed/ops/patch_embedding.h"

#include "linear_parts.h"
#include "heed/cost/for_each_number.h"

namespace heed {

namespace {

/// The patches of an image [channels, height, width].
struct Patches {
  Index channels, height, width, patch_height, patch_width;

  Index count() const { return (height / patch_height) * (width / patch_width); }
  Index taps() const { return channels * patch_height * patch_width; }

  /// Calls f(image position, tap, patch) for each tap (channel, row, column) of each patch, patches innermost.
  template <class F>
  void for_each_tap(const F& f) const {
    for (Index tap = 0; tap < taps(); ++tap) {
      const Index column = tap % patch_width, row = tap / patch_width % patch_height;
      const Index top = tap / (patch_width * patch_height) * height + row;
      Index patch = 0;
      for (Index y = 0; y < height; y += patch_height)
        for (Index x = 0; x < width; x += patch_width) f((top + y) * width + x + column, tap, patch++);
    }
  }
};

}  // namespace

template <class T>
Var<T> patch_embedding(Var<T> x, Var<T> weight, Var<T> bias) {
  Tape<T>& tape = tape_of("patch_embedding", x, weight, bias);
  const Shape &xs = x.shape(), &ws = weight.shape();
  require(xs.rank() == 4 && ws.rank() == 4 && ws[1] == xs[1],
          "[patch_embedding] x has shape {}, weight {}; expected [B, C, H, W] and [D, C, p, q]", xs, ws);
  require(xs[2] % ws[2] == 0 && xs[3] % ws[3] == 0,
          "[patch_embedding] patches of {}x{} do not divide an image of {}x{}", ws[2], ws[3], xs[2], xs[3]);
  require_shape("patch_embedding", "bias", bias, {ws[0]});
  const Patches image_patches{xs[1], xs[2], xs[3], ws[2], ws[3]};
  const Index images = xs[0], width = ws[0], taps = image_patches.taps();
  const Index count = image_patches.count(), rows = images * count, image_size = xs[1] * xs[2] * xs[3];
  const Matrix<T> patches(tape.memory(rows * taps), rows, taps);
  const Matrix<const T> W(weight.data(), width, taps);
  const kernels::Gemm gemm{tape.pass().execution.products};
  return tape.record(
      {"patch_embedding", linear_cost(rows, taps, width, static_cast<bool>(bias), false, tape.wanted(x))},
      Shape{images, count, width}, {x, weight, bias},
      [=](T* y) {
        parallel_for(images, [=, my = Matrix<T>(y, rows, width)](Index image) {
          const T* const from = x.data() + image * image_size;
          const Matrix<T> to = patches.middle_rows(image * count, count);
          image_patches.for_each_tap([=](Index position, Index tap, Index patch) { to(patch, tap) = from[position]; });
          gemm.add(to, transposed(W), bias ? bias.data() : nullptr, {}, my.middle_rows(image * count, count));
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
            image_patches.for_each_tap([&](Index position, Index tap, Index patch) {
              write(dx.update, dx.data[image * image_size + position], dpatches(image * count + patch, tap));
            });
        }
      });
}

#define INSTANTIATE(T) template Var<T> patch_embedding(Var<T>, Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
