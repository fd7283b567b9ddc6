// Convolutions of 3 x 3 windows: dense, as operations on the tape, and depth-wise, as kernels.
#include "heed/bench/kernels.h"

#include "heed/kernels/grids/depthwise.h"
#include "heed/ops/conv2d.h"

#include <memory>

namespace heed::bench {

namespace {

struct ImageSize {
  Index side, channels;

  Index places() const { return side * side; }
  std::string text() const { return fmt::format("{} x {} x {}", side, side, channels); }
  kernels::Windows windows() const { return {channels, side, side, 3, 1, 1}; }
};

/// Adds a convolution of x [B, side^2, C] to C channels, forward or, if `back`, forward and backward.
void add_dense(KernelCases& cases, ImageSize size, bool back) {
  constexpr Index B = ModelSizes::images;
  const Index C = size.channels, numbers = B * size.places() * C, products = 2 * numbers * C * 9;
  cases.add(back ? "conv 3 x 3 forward and back" : "conv 3 x 3 forward", size.text(),
            fmt::format("{} x {} to {}", B, size.text(), C), {{Resource::gemm, (back ? 3 : 1) * products}},
            [=](Operands& operands) {
              const Shape shape{B, size.places(), C};
              const View<const float> x(operands.in(numbers), shape);
              const View<const float> weight(operands.in(C * C * 9), {C, C, 3, 3}), bias(operands.in(C), {C});
              const View<const float> dy(operands.in(back ? numbers : 0), shape);
              operands.out(numbers);
              return [=, tape = std::make_shared<Tape<float>>()] {
                tape->clear();
                const auto take = [&](View<const float> view) {
                  return back ? tape->input(view) : tape->constant(view);
                };
                const Var<float> y = conv2d(take(x), take(weight), take(bias), {size.side, size.side, 1, 1});
                if (back) tape->backward(y, dy);
              };
            });
}

/// Adds a depth-wise kernel; call(windows, operands) returns the function that runs it.
template <class Call>
void add_depthwise(KernelCases& cases, const char* kernel, ImageSize size, const Call& call) {
  const Index products = 2 * 9 * size.places() * size.channels;
  cases.add(kernel, size.text(), size.text(), {{Resource::multiply_add, products}},
            [=](Operands& operands) { return call(size.windows(), operands); });
}

}  // namespace

std::vector<KernelCase> convolution_cases() {
  KernelCases cases;
  for (const ImageSize size : {ImageSize{28, 32}, ImageSize{28, 64}, ImageSize{14, 128}})
    for (const bool back : {false, true}) add_dense(cases, size, back);
  for (const ImageSize size : {ImageSize{28, 64}, ImageSize{14, 192}, ImageSize{14, 384}}) {
    const Index places = size.places(), C = size.channels;
    add_depthwise(cases, "depth-wise 3 x 3 forward", size, [=](const kernels::Windows& w, Operands& o) {
      return [=, x = o.in(places, C), W = o.in(9, C), bias = o.in(C), y = o.out(places, C)] {
        kernels::depthwise(w, x, W, bias, Update::assign, y);
      };
    });
    add_depthwise(cases, "depth-wise 3 x 3 input gradient", size, [=](const kernels::Windows& w, Operands& o) {
      return [=, dy = o.in(places, C), W = o.in(9, C), dx = o.out(places, C)] {
        kernels::depthwise_backward(w, dy, W, Update::assign, dx);
      };
    });
    add_depthwise(cases, "depth-wise 3 x 3 weight gradient", size, [=](const kernels::Windows& w, Operands& o) {
      return [=, x = o.in(places, C), dy = o.in(places, C), dW = o.out(9, C)] {
        kernels::depthwise_weight_gradient(w, x, dy, Update::assign, dW);
      };
    });
  }
  return cases;
}

}  // namespace heed::bench
