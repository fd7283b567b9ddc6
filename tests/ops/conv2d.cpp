// Convolutions compared with plain loops, for few and for many images. tests/nn/host_families.cpp compares gradients of
// whole models with central differences.
#include "heed/ops/conv2d.h"

#include "heed/base/random.h"
#include "heed/base/with_threads.h"
#include "heed/tape/packed_weights.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

struct Sizes {
  Index images, side, channels, outputs, kernel, stride, padding;
  Index columns = side;  ///< width of a grid that is not square
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
  const ConvGrid grid{s.side, s.columns, s.stride, s.padding};
  const Index width = grid.out_width(s.kernel), inputs = depthwise ? 1 : s.channels;
  const Index in_rows = s.side * s.columns, out_rows = grid.out_height(s.kernel) * width;
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
              const Index row = r / width * s.stride + i - s.padding, column = r % width * s.stride + j - s.padding;
              if (row < 0 || row >= s.side || column < 0 || column >= s.columns) continue;
              const Index at = (n * in_rows + row * s.columns + column) * s.channels + (depthwise ? o : c),
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

/// Returns y, dx and dW of a float convolution with the given packed copies of its weight, if any.
std::vector<float> convolved(const Sizes& s, bool bias, Parameters<float>& parameters,
                             const PackedWeights<float>* packed, Products products) {
  Gradients<float> gradients(parameters);
  gradients.reset();
  Tensor<float> x(Shape{s.images, s.side * s.side, s.channels});
  for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<float>(RandomStream(2).normal(i));
  Tape<float> tape(Pass<float>{.parameters = &parameters,
                               .packed = packed,
                               .gradients = &gradients,
                               .training = true,
                               .execution = {.products = products}});
  const Var<float> input = tape.input(std::as_const(x).view());
  const Var<float> y =
      conv2d(input, tape.parameter(0), bias ? tape.parameter(1) : Var<float>{}, {s.side, s.side, s.stride, s.padding});
  tape.backward(y, y.value());
  std::vector<float> all(y.data(), y.data() + y.size());
  const View<const float> dx = tape.gradient(input);
  all.insert(all.end(), dx.data(), dx.data() + dx.size());
  all.insert(all.end(), gradients.data(), gradients.data() + parameters[0].size());
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_conv2d)

// An image of 85 x 85 gives three strips of windows, one for each of three threads; the last three grids are tall or
// wide. Values that remain in the tape's memory must not affect the next pass.
BOOST_AUTO_TEST_CASE(plain_loops_agree) {
  constexpr Sizes all[] = {{1, 16, 32, 64, 3, 1, 1}, {3, 16, 32, 64, 3, 1, 1}, {1, 85, 2, 64, 3, 1, 1},
                           {1, 12, 40, 40, 5, 2, 2}, {20, 5, 3, 17, 3, 2, 0},  {2, 7, 1, 1, 7, 1, 3},
                           {3, 4, 5, 35, 1, 1, 0},   {2, 9, 3, 5, 3, 2, 1, 4}, {2, 4, 3, 5, 3, 1, 1, 11},
                           {2, 3, 6, 2, 3, 2, 0, 10}};
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
        BOOST_TEST_CONTEXT(s.images << " images, " << s.side << " x " << s.columns << ", "
                                    << (depthwise ? "depthwise" : "dense")) {
          // Sums of up to 7225 terms are added in a different order.
          constexpr double rounding = 1e-13;
          BOOST_TEST(off.y < rounding);
          BOOST_TEST(off.dx < rounding);
          BOOST_TEST(off.dweight < rounding);
          BOOST_TEST(off.dbias < rounding);
        }
      }
  }
}

// Packed copies change no bit, whether they are for forward passes alone or for gradients too.
BOOST_AUTO_TEST_CASE(packed_weights_have_the_same_bits) {
  for (const Sizes& s : {Sizes{3, 9, 16, 35, 3, 1, 1}, Sizes{3, 9, 16, 35, 3, 2, 1}, Sizes{2, 8, 5, 7, 5, 1, 2},
                         Sizes{2, 8, 5, 7, 3, 1, 0}})
    for (const bool bias : {false, true}) {
      const Multiplied multiplied =
          s.stride == 1 && s.padding > 0 ? Multiplied::centred_convolution : Multiplied::convolution;
      ParameterList list;
      list.add({.name = "weight",
                .shape = {s.outputs, s.channels, s.kernel, s.kernel},
                .initial = Initial::normal(1),
                .multiplied = multiplied});
      list.add({"bias", {s.outputs}, Initial::normal(1)});
      Parameters<float> parameters(list);
      parameters.initialise(1);
      for (const Products products : {Products::exact, Products::bf16}) {
        const std::vector<float> expected = convolved(s, bias, parameters, nullptr, products);
        for (const bool gradients : {false, true}) {
          PackedWeights<float> packed;
          packed.pack(products, parameters, gradients);
          BOOST_TEST((convolved(s, bias, parameters, &packed, products) == expected),
                     s.kernel << " x " << s.kernel << ", stride " << s.stride << ", bias " << bias << ", gradients "
                              << gradients << (products == Products::bf16 ? ", bf16" : ""));
          if (kernels::packs_weights) BOOST_TEST(packed.find(0) != nullptr);
        }
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
