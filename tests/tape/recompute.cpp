// Parts of a model that are recomputed in the backward pass.
#include "heed/ops/activation.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/dropout.h"
#include "heed/tape/tape.h"

#include <boost/test/unit_test.hpp>

using namespace heed;
using D = Var<double>;

BOOST_AUTO_TEST_SUITE(recompute)

// Forty layers of 1000 elements separated by norms, with and without saving the intermediate results.
BOOST_AUTO_TEST_CASE(recomputed_parts_keep_their_input_alone_and_give_the_same_bits) {
  constexpr int layers = 40;
  ParameterList list;
  const ParameterId gamma = list.add({"gamma", {10}, Initial::normal(1)}),
                    beta = list.add({"beta", {10}, Initial::normal(1)});
  const ParameterId mean = list.add({"mean", {10}, Initial::constant(0), false, false});
  const ParameterId variance = list.add({"variance", {10}, Initial::constant(1), false, false});
  Tensor<double> x(Shape{100, 10});
  for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(4).normal(i);
  const auto run = [&](bool recompute, bool with_gradients) {
    Parameters<double> parameters(list);
    parameters.initialise(1);
    Gradients<double> gradients(parameters);
    gradients.reset();
    Tape<double> tape({.parameters = &parameters,
                       .gradients = with_gradients ? &gradients : nullptr,
                       .training = true,
                       .random = RandomStream(5)});
    const auto layer = [=](D z) {
      Tape<double>& on = z.tape();
      z = add(dropout(gelu(z), 0.2, 1), z);
      return batch_norm(z, on.parameter(gamma), on.parameter(beta), on.buffer(mean), on.buffer(variance));
    };
    const D input = tape.input(std::as_const(x).view());
    D y = input;
    for (int i = 0; i < layers; ++i) y = recompute ? tape.recompute(y, layer) : layer(y);
    if (!with_gradients) return std::pair(std::vector<double>(y.data(), y.data() + y.size()), tape.reserved());
    tape.backward(y, y.value());
    std::vector<double> results(parameters.data(), parameters.data() + parameters.size());
    results.insert(results.end(), gradients.data(), gradients.data() + gradients.size());
    const View<const double> dx = tape.gradient(input);
    results.insert(results.end(), dx.data(), dx.data() + dx.size());
    return std::pair(results, tape.reserved());
  };
  for (const bool with_gradients : {true, false}) {
    const auto [kept, kept_bytes] = run(false, with_gradients);
    const auto [again, again_bytes] = run(true, with_gradients);
    BOOST_TEST(again == kept, boost::test_tools::per_element());
    BOOST_TEST(2 * again_bytes < kept_bytes);
  }
}

// Gradients of inputs need no gradients of parameters.
BOOST_AUTO_TEST_CASE(inputs_of_recomputed_parts_have_gradients_without_those_of_parameters) {
  ParameterList list;
  const ParameterId scale = list.add({"scale", {1}, Initial::constant(5)});
  Parameters<double> parameters(list);
  parameters.initialise(1);
  const Tensor<double> x(Shape{1}, {3.0});
  Tape<double> tape({.parameters = &parameters});
  const D input = tape.input(x.view());
  const D y = tape.recompute(input, [=](D z) { return mul(mul(z, z), z.tape().parameter(scale)); });
  tape.backward(y);
  BOOST_TEST(tape.gradient(input)[0] == 2 * 3.0 * 5);
}

BOOST_AUTO_TEST_SUITE_END()
