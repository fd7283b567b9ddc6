// Convolutions compared with plain loops, for few and for many images. tests/nn/host_families.cpp compares gradients of
// whole models with central differences.
#include "heed/ops/conv2d.h"

#include "heed/base/random.h"
#include "heed/base/with_threads.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

struct Sizes {
  Index images, side, channels, outputs, kernel, stride, padding;
};

Tensor<double> drawn(const Shape& shape, const char* name) {
  Tensor<double> tensor(shape);
  for (Index i = 0; i < tensor.size(); ++i) tensor[i] = RandomStream(8).derive(name).normal(i);
  return tensor;
}

/// Largest deviation of each result from plain loops, relative to the largest element.
struct Deviations {
  double y, dx, dweight, dbias;
};

double deviation(const double* got, const Tensor<double>& expected) {
  double off = 0, most = 0;
  for (Index i = 0; i < expected.size(); ++i) {
    off = std::max(off, std::abs(got[i] - expected[i]));
    most = std::max(most, std::abs(expected[i]));
  }
  return off / most;
}

Deviations deviations(const Sizes& s, bool depthwise, Tape<double>& tape) {
  const ConvGrid grid{s.side, s.side, s.stride, s.padding};
  const Index side = grid.out_height(s.kernel), inputs = depthwise ? 1 : s.channels;
  const Index in_rows = s.side * s.side, out_rows = side * side;
  const Tensor<double> x = drawn({s.images, in_rows, s.channels}, "x"), b = drawn({s.outputs}, "b"),
                       w = drawn({s.outputs, inputs, s.kernel, s.kernel}, "w"),
                       dy = drawn({s.images, out_rows, s.outputs}, "dy");
  Tensor<double> y(dy.shape()), dx(x.shape()), dw(w.shape()), db(b.shape());
  for (Index n = 0; n < s.images; ++n)
    for (Index r = 0; r < out_rows; ++r)
      for (Index o = 0; o < s.outputs; ++o) {
        const Index to = (n * out_rows + r) * s.outputs + o;
        y[to] += b[o];
        db[o] += dy[to];
        for (Index c = 0; c < inputs; ++c)
          for (Index i = 0; i < s.kernel; ++i)
            for (Index j = 0; j < s.kernel; ++j) {
              const Index row = r / side * s.stride + i - s.padding, column = r % side * s.stride + j - s.padding;
              if (row < 0 || row >= s.side || column < 0 || column >= s.side) continue;
              const Index at = (n * in_rows + row * s.side + column) * s.channels + (depthwise ? o : c),
                          weight = ((o * inputs + c) * s.kernel + i) * s.kernel + j;
              y[to] += w[weight] * x[at];
              dx[at] += w[weight] * dy[to];
              dw[weight] += dy[to] * x[at];
            }
      }
  const Var<double> vx = tape.input(x.view()), vw = tape.input(w.view()), vb = tape.input(b.view());
  const Var<double> result = depthwise ? depthwise_conv2d(vx, vw, vb, grid) : conv2d(vx, vw, vb, grid);
  BOOST_REQUIRE(result.shape() == dy.shape());
  const double off = deviation(result.data(), y);
  tape.backward(result, dy.view());
  return {off, deviation(tape.gradient(vx).data(), dx), deviation(tape.gradient(vw).data(), dw),
          deviation(tape.gradient(vb).data(), db)};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_conv2d)

// An image of 85 x 85 gives three strips of windows, enough for five threads. Remaining values in the tape's memory
// must not affect the next pass.
BOOST_AUTO_TEST_CASE(plain_loops_agree) {
  constexpr Sizes all[] = {{1, 16, 32, 64, 3, 1, 1}, {3, 16, 32, 64, 3, 1, 1}, {1, 85, 2, 64, 3, 1, 1},
                           {1, 12, 40, 40, 5, 2, 2}, {20, 5, 3, 17, 3, 2, 0},  {2, 7, 1, 1, 7, 1, 3},
                           {3, 4, 5, 35, 1, 1, 0}};
  for (const int threads : {1, 3}) {
    const WithThreads with(threads);
    Tape<double> tape;
    for (const Sizes& given : all)
      for (const bool depthwise : {false, true}) {
        Sizes s = given;
        if (depthwise) s.outputs = s.channels;
        deviations(s, depthwise, tape);
        tape.clear();
        const Deviations off = deviations(s, depthwise, tape);
        tape.clear();
        BOOST_TEST_CONTEXT(s.images << " images, side " << s.side << ", " << (depthwise ? "depthwise" : "dense")) {
          // Sums of up to 7200 terms in another order.
          constexpr double rounding = 1e-13;
          BOOST_TEST(off.y < rounding);
          BOOST_TEST(off.dx < rounding);
          BOOST_TEST(off.dweight < rounding);
          BOOST_TEST(off.dbias < rounding);
        }
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
