// Noise of prepared attention tensors: standard Gumbel, separate for each layer, head and step, absent in evaluation.
#include "heed/ops/prepared_attention.h"

#include "heed/attention/capabilities/pictures.h"
#include "heed/nn/mechanism_layer.h"
#include "support/statistics.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// Two layers of AFT conv with equal weights: the biases of a head are the samples softmax(noise / tau).
struct TwoLayers {
  static constexpr Index heads = 2, side = 21, places = side * side;
  static constexpr double tau = 4;
  AttentionShape shape{heads, places, places, 1, 1, side, side, false};
  std::shared_ptr<const Mechanism> mechanism = make();
  ParameterList list;
  std::vector<MechanismLayer> layers;

  static std::unique_ptr<Mechanism> make() {
    return make_mechanism("aft", {{"variant", "conv"},
                                  {"size", std::to_string(side)},
                                  {"reparam", "false"},
                                  {"sparsity", "gumbel"},
                                  {"tau", "4"}});
  }
  TwoLayers() {
    for (const char* name : {"first.attn", "second.attn"}) {
      layers.emplace_back(name, make(), heads, heads, shape);
      layers.back().declare(list);
    }
  }

  /// Returns the biases used in a step by one head of a layer.
  std::vector<double> biases(const std::string& layer, Index head, std::uint64_t step, bool training = true) const {
    Parameters<float> parameters(list);
    std::fill_n(parameters.data(), parameters.trainable_size(), 1.0f);
    PreparationPass<float> pass{&parameters};
    pass.training = training, pass.random = RandomStream(step);
    prepare(pass);
    AttentionInput<float> in{.shape = shape, .q = {}, .k = {}, .v = {}};
    in.prepared = {parameters[list.find(layer + ".prepared")].data()};
    const Tensor<float> windows = mechanism->pictures()->picture("biases", in);
    return {windows.data() + head * places, windows.data() + (head + 1) * places};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(prepared_attention)

// Logarithms of ratios of samples, times tau, are differences of two Gumbel variables, so they have the logistic
// distribution.
BOOST_FIXTURE_TEST_CASE(noise_is_gumbel, TwoLayers) {
  std::vector<double> differences;
  for (std::uint64_t step = 0; step < 10; ++step)
    for (const char* layer : {"first.attn", "second.attn"})
      for (Index head = 0; head < heads; ++head) {
        const std::vector<double> samples = biases(layer, head, step);
        double sum = 0;
        for (const double sample : samples) sum += sample;
        BOOST_TEST(std::abs(sum - 1) < 1e-5);
        for (std::size_t i = 0; i + 1 < samples.size(); i += 2)
          differences.push_back(tau * std::log(samples[i] / samples[i + 1]));
      }
  check_distribution(
      differences, [](double x) { return 1 / (1 + std::exp(-x)); }, "differences of noise");
}

// Equal noise would give equal signs of the differences between neighbouring positions; with independent noise, each
// sign is equal with probability 1/2.
BOOST_FIXTURE_TEST_CASE(layers_heads_and_steps_are_independent, TwoLayers) {
  const auto signs = [&](const char* layer, Index head, std::uint64_t step) {
    const std::vector<double> samples = biases(layer, head, step);
    std::vector<bool> greater;
    for (std::size_t i = 0; i + 1 < samples.size(); i += 2) greater.push_back(samples[i] > samples[i + 1]);
    return greater;
  };
  const std::vector<bool> one = signs("first.attn", 0, 3);
  BOOST_TEST((signs("first.attn", 0, 3) == one));
  for (const std::vector<bool>& other :
       {signs("second.attn", 0, 3), signs("first.attn", 1, 3), signs("first.attn", 0, 4), signs("second.attn", 1, 3)}) {
    double alike = 0;
    for (std::size_t i = 0; i < one.size(); ++i) alike += one[i] == other[i];
    check_z(z_of_successes(alike, static_cast<double>(one.size()), 0.5), "signs");
  }
}

// Without noise, the largest bias is selected: here the first, since all are equal.
BOOST_FIXTURE_TEST_CASE(evaluation_has_no_noise, TwoLayers) {
  std::vector<double> expected(places);
  expected[0] = 1;
  for (const char* layer : {"first.attn", "second.attn"})
    for (Index head = 0; head < heads; ++head) BOOST_TEST((biases(layer, head, 3, false) == expected));
}

// A tensor prepared on the tape equals the one prepared for the step, from the same noise.
BOOST_FIXTURE_TEST_CASE(the_tape_draws_what_a_step_draws, TwoLayers) {
  Parameters<double> parameters(list);
  parameters.initialise(1);
  PreparationPass<double> pass{&parameters};
  pass.training = true, pass.random = RandomStream(5);
  prepare(pass);
  for (const std::string layer : {"first.attn", "second.attn"}) {
    const ParameterId w = list.find(layer + ".w");
    ParameterList unused;
    const PreparedAttention same(unused, layer, mechanism, shape, {w});
    const PreparedAttention other(unused, layer + ".other", mechanism, shape, {w});
    Tape<double> tape({.parameters = &parameters, .training = true, .random = RandomStream(5)});
    const std::vector<Var<double>> of{tape.parameter(w)};
    const View<const double> expected = std::as_const(parameters)[list.find(layer + ".prepared")];
    const auto equals = [&](const PreparedAttention& prepared) {
      const Var<double> y = prepared.on<double>(tape, of);
      return std::equal(y.data(), y.data() + y.size(), expected.begin(), expected.end());
    };
    BOOST_TEST(equals(same));
    BOOST_TEST(!equals(other));
  }
}

// Noise is drawn only in training passes that are not deterministic.
BOOST_FIXTURE_TEST_CASE(the_tape_draws_nothing_where_nothing_is_random, TwoLayers) {
  Parameters<double> parameters(list);
  parameters.initialise(1);
  prepare(PreparationPass<double>{&parameters});
  const ParameterId w = list.find("first.attn.w");
  ParameterList unused;
  const PreparedAttention prepared(unused, "first.attn", mechanism, shape, {w});
  const View<const double> evaluated = std::as_const(parameters)[list.find("first.attn.prepared")];
  for (const auto& [training, deterministic] : {std::pair(false, false), {true, true}, {true, false}}) {
    Tape<double> tape({.parameters = &parameters,
                       .training = training,
                       .random = RandomStream(5),
                       .execution = {.deterministic = deterministic}});
    const std::vector<Var<double>> of{tape.parameter(w)};
    const Var<double> y = prepared.on<double>(tape, of);
    const bool random = training && !deterministic;
    BOOST_TEST(std::equal(y.data(), y.data() + y.size(), evaluated.begin(), evaluated.end()) == !random);
  }
}

BOOST_AUTO_TEST_SUITE_END()
