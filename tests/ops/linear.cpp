// The division of a linear or adder layer between threads does not change the bits of its results, for any number type.
#include "heed/ops/adder_linear.h"
#include "heed/ops/linear.h"

#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns y, dW, db and dx of a layer that runs alone, so that its products are divided between threads.
template <class T>
std::vector<T> results(Index rows, Products products) {
  constexpr Index in = 200, out = 330;
  ParameterList list;
  const ParameterId weight =
      list.add({.name = "weight", .shape = {out, in}, .initial = Initial::normal(1), .multiplied = Multiplied::linear});
  const ParameterId bias = list.add({"bias", {out}, Initial::normal(1)});
  Parameters<T> parameters(list);
  parameters.initialise(1);
  PackedWeights<T> packed;
  packed.pack(products, parameters, true);
  Gradients<T> gradients(parameters);
  gradients.reset();
  Tensor<T> x(Shape{rows, in});
  for (Index i = 0; i < x.size(); ++i) x[i] = static_cast<T>(RandomStream(2).normal(i));
  Tape<T> tape(Pass<T>{.parameters = &parameters,
                       .packed = &packed,
                       .gradients = &gradients,
                       .training = true,
                       .execution = {.products = products}});
  const Var<T> input = tape.input(std::as_const(x).view());
  const Var<T> y = linear(input, tape.parameter(weight), tape.parameter(bias));
  tape.backward(y, y.value());
  std::vector<T> all(y.data(), y.data() + y.size());
  all.insert(all.end(), gradients.data(), gradients.data() + gradients.size());
  const View<const T> dx = tape.gradient(input);
  all.insert(all.end(), dx.data(), dx.data() + dx.size());
  return all;
}

template <class T>
void check(Products products) {
  for (const Index rows : {1, 65, 700}) {
    std::vector<T> alone;
    for (const int count : {1, 2, 3}) {
      const WithThreads with(count);
      const std::vector<T> now = results<T>(rows, products);
      if (count == 1) alone = now;
      BOOST_TEST((now == alone), rows << " rows, " << count << " threads");
    }
  }
}

/// Returns y, dx, dW and db of an adder layer in float that runs alone, so that its rows and weights are divided
/// between threads.
std::vector<float> adder_results(const AdderLinearOptions& options) {
  constexpr Index rows = 1200, in = 40, out = 50;
  Tensor<float> x(Shape{rows, in}), weight(Shape{out, in}), bias(Shape{out}), dy(Shape{rows, out});
  std::uint64_t seed = 0;
  for (Tensor<float>* tensor : {&x, &weight, &bias, &dy}) {
    ++seed;
    for (Index i = 0; i < tensor->size(); ++i) (*tensor)[i] = static_cast<float>(RandomStream(seed).normal(i));
  }
  Tape<float> tape;
  std::vector<Var<float>> inputs;
  for (const Tensor<float>* tensor : {&x, &weight, &bias}) inputs.push_back(tape.input(tensor->view()));
  const Var<float> y = adder_linear(inputs[0], inputs[1], inputs[2], options);
  tape.backward(y, std::as_const(dy).view());
  std::vector<float> all(y.data(), y.data() + y.size());
  for (const Var<float>& input : inputs) {
    const View<const float> gradient = tape.gradient(input);
    all.insert(all.end(), gradient.begin(), gradient.end());
  }
  return all;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(ops_linear)

BOOST_AUTO_TEST_CASE(threads_make_no_difference_to_a_bit) {
  check<float>(Products::exact);
  check<double>(Products::exact);
  check<float>(Products::bf16);
}

BOOST_AUTO_TEST_CASE(threads_make_no_difference_to_an_adder_layer) {
  using enum DistanceGradient;
  for (const AdderLinearOptions& options : {AdderLinearOptions{sign, sign}, {hardtanh, hardtanh}, {hardtanh, full}}) {
    std::vector<float> alone;
    for (const int count : {1, 2, 3}) {
      const WithThreads with(count);
      const std::vector<float> now = adder_results(options);
      if (count == 1) alone = now;
      BOOST_TEST((now == alone), count << " threads");
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
