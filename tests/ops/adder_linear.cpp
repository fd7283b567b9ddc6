// Adder linear layers: hand-calculated values, scaling, errors. src/checks/adder_cases.cpp checks gradients and costs.
#include "heed/ops/adder_linear.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

namespace {

Tensor<double> tensor(const Shape& shape, const std::vector<double>& values) {
  Tensor<double> t(shape);
  std::copy(values.begin(), values.end(), t.begin());
  return t;
}

bool refused(const std::string& expected, const Shape& x, const Shape& weight, const Shape& bias) {
  const Tensor<double> tx(x), tw(weight), tb(bias);
  Tape<double> tape;
  try {
    adder_linear(tape.input(tx.view()), tape.input(tw.view()), tape.input(tb.view()));
  } catch (const Error& e) {
    BOOST_TEST(e.what() == expected);
    return true;
  }
  return false;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adder_linear_layer)

// W - x is (3, -0.5) for the first output and (0, 2) for the second; dy is (10, 1).
BOOST_AUTO_TEST_CASE(values_by_hand) {
  const Tensor<double> x = tensor({1, 2}, {1, 2}), weight = tensor({2, 2}, {4, 1.5, 1, 4}),
                       bias = tensor({2}, {100, 200});
  const Tensor<double> dy = tensor({1, 2}, {10, 1});
  using enum DistanceGradient;
  const auto run = [&](DistanceGradient input_grad, DistanceGradient weight_grad, const std::vector<double>& dx,
                       const std::vector<double>& dw) {
    Tape<double> tape;
    const Var<double> vx = tape.input(x.view()), vw = tape.input(weight.view()), vb = tape.input(bias.view());
    const Var<double> y = adder_linear(vx, vw, vb, {input_grad, weight_grad});
    tape.backward(y, dy.view());
    const std::vector<double> out{96.5, 198}, db{10, 1};
    BOOST_TEST(y.value() == out, boost::test_tools::per_element());
    BOOST_TEST(tape.gradient(vx) == dx, boost::test_tools::per_element());
    BOOST_TEST(tape.gradient(vw) == dw, boost::test_tools::per_element());
    BOOST_TEST(tape.gradient(vb) == db, boost::test_tools::per_element());
  };
  run(sign, sign, {10, -9}, {-10, 10, 0, -1});
  run(hardtanh, hardtanh, {10, -4}, {-10, 5, 0, -1});
  run(hardtanh, full, {10, -4}, {-30, 5, 0, -2});
}

BOOST_AUTO_TEST_CASE(adaptive_scale_makes_the_root_mean_square_a_fifth) {
  std::vector<double> dw{3, -4, 0, 12};
  adaptive_scale(4, dw.data());
  const std::vector<double> expected{0.4 * 3 / 13, -0.4 * 4 / 13, 0, 0.4 * 12 / 13};
  BOOST_TEST(dw == expected, boost::test_tools::tolerance(1e-15) << boost::test_tools::per_element());

  std::vector<float> zero(3, 0.0f), large(2, 1e30f);
  adaptive_scale(3, zero.data());
  BOOST_TEST(zero == std::vector<float>(3, 0.0f), boost::test_tools::per_element());
  adaptive_scale(2, large.data());  // its squares overflow float
  BOOST_TEST(large == std::vector<float>(2, 0.2f), boost::test_tools::tolerance(1e-6f)
                                                       << boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(refusals_name_both_shapes) {
  BOOST_TEST(refused("[adder_linear] x has 4 channels, weight [2, 3] expects 3; they must match", {5, 4}, {2, 3}, {2}));
  BOOST_TEST(refused("[adder_linear] bias has shape [3]; expected [2]", {5, 3}, {2, 3}, {3}));
  BOOST_TEST(refused("[adder_linear] x has shape [5, 3], weight [6]; expected [..., inputs] and [outputs, inputs]",
                     {5, 3}, {6}, {2}));
}

BOOST_AUTO_TEST_SUITE_END()
