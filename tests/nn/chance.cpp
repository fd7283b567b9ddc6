// Randomness in a model: initial values have the specified variance; dropout and stochastic depth preserve the mean and
// have the right rates.
#include "heed/nn/block.h"
#include "heed/nn/vit.h"
#include "heed/ops/dropout.h"

#include "support/statistics.h"
#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Variance and fourth moment of a tensor's initial values.
struct Moments {
  double variance, fourth;
};
Moments moments_of(const Initial& initial) {
  const double v = initial.value * initial.value;
  // For z from N(0, 1) truncated at two deviations, E z^2 = 1 - 2 f and E z^4 = 3 - 14 f with f = 2 phi(2) / (2 Phi(2)
  // - 1).
  const double f = 2 * std::exp(-2.0) / std::sqrt(2 * std::numbers::pi) / (1 - 2 * normal_distribution(-2));
  switch (initial.kind) {
    case Initial::Kind::normal:
      return {v, 3 * v * v};
    case Initial::Kind::truncated_normal:
      return {v * (1 - 2 * f), v * v * (3 - 14 * f)};
    case Initial::Kind::uniform:
      return {v / 3, v * v / 5};
    default:
      return {0, 0};
  }
}

std::vector<double> drawn(const Initial& initial, Index n, const RandomStream& stream = RandomStream(1)) {
  Tensor<double> values(Shape{n});
  fill_initial(initial, stream, values.view());
  return {values.begin(), values.end()};
}

using Drop = Var<double> (*)(Var<double>, double, std::uint64_t);

/// Returns the results of `drop` for n images of a single element, 1.
std::vector<double> kept(Drop drop, double rate, std::uint64_t place, std::uint64_t step, Index n) {
  Tensor<double> ones(Shape{n, 1});
  std::fill(ones.begin(), ones.end(), 1.0);
  Tape<double> tape({.training = true, .random = RandomStream(1).derive("step").derive(step)});
  const Var<double> y = drop(tape.constant(std::as_const(ones).view()), rate, place);
  return {y.data(), y.data() + n};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(chance_in_models)

BOOST_AUTO_TEST_CASE(initial_values_have_their_distributions) {
  constexpr Index n = 200'000;
  check_distribution(
      drawn(Initial::normal(0.3), n), [](double x) { return normal_distribution(x / 0.3); }, "normal");
  check_distribution(
      drawn(Initial::uniform(0.3), n), [](double x) { return (x + 0.3) / 0.6; }, "uniform");
  const double tail = normal_distribution(-2);
  const auto truncated = [=](double x) { return (normal_distribution(x / 0.02) - tail) / (1 - 2 * tail); };
  check_distribution(drawn(Initial::truncated_normal(0.02), n), truncated, "truncated normal");
  for (const Initial& initial : {Initial::normal(2), Initial::uniform(0.1), Initial::truncated_normal(0.02)}) {
    const auto [variance, fourth] = moments_of(initial);
    check_z(z_of_variance(drawn(initial, n), 0, variance, fourth), "variance");
  }
}

// Random tensors of at least 500 elements have the mean and the variance that their layer declares; other tensors are
// constant or too small.
BOOST_AUTO_TEST_CASE(tensors_of_a_model_start_as_declared) {
  ModelConfig config = Workshop(10, 10).experiment().model;
  config.dim = 64, config.hidden = 128, config.depth = 3, config.heads = 4;
  const VisionTransformer model(config, {});
  Parameters<double> parameters(model.parameters());
  parameters.initialise(11);
  int random = 0;
  for (ParameterId id = 0; id < parameters.list().size(); ++id) {
    const ParameterSpec& spec = parameters.list()[id];
    const std::vector<double> values(parameters[id].begin(), parameters[id].end());
    const auto [variance, fourth] = moments_of(spec.initial);
    if (variance == 0) {
      for (const double x : values) BOOST_REQUIRE(x == spec.initial.value);
      continue;
    }
    if (values.size() < 500) continue;
    ++random;
    check_z(z_of_mean(values, 0, variance), spec.name + ", mean");
    check_z(z_of_variance(values, 0, variance, fourth), spec.name + ", variance");
  }
  BOOST_TEST(random >= 3 * 4 + 1);
}

// All 120 orders of five numbers are equally frequent.
BOOST_AUTO_TEST_CASE(distinct_numbers_come_in_every_order) {
  std::vector<double> orders(120);
  for (std::uint64_t seed = 0; seed < 24'000; ++seed) {
    std::size_t order = 0;
    std::vector<bool> seen(5);
    const std::vector<double> order_drawn = drawn(Initial::distinct(3, 5), 5, RandomStream(seed));
    for (Index i = 0; i < 5; ++i) {
      const auto x = static_cast<std::size_t>(order_drawn[static_cast<std::size_t>(i)]) - 3;
      BOOST_REQUIRE((x < 5 && !seen[x]));
      order = order * static_cast<std::size_t>(5 - i) +
              static_cast<std::size_t>(std::count(seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(x), false));
      seen[x] = true;
    }
    ++orders[order];
  }
  check_z(z_of_equal_cells(orders), "orders");
}

// Kept elements are 1 / (1 - rate), so that the mean of all is 1. Drops of neighbouring elements, of one element at two
// places, and of one element in two steps are independent: both are kept with probability (1 - rate)^2.
BOOST_AUTO_TEST_CASE(dropping_keeps_the_mean_and_is_independent) {
  constexpr Index n = 100'000;
  for (const Drop drop : {Drop(dropout<double>), Drop(stochastic_depth<double>)})
    for (const double rate : {0.1, 0.5, 0.9}) {
      const std::vector<double> first = kept(drop, rate, 1, 0, n);
      check_z(z_of_mean(first, 1, rate / (1 - rate)), "mean");
      const auto both = [&](const std::vector<double>& a, const std::vector<double>& b, std::size_t shift) {
        double count = 0;
        for (std::size_t i = 0; i + shift < a.size(); ++i) count += a[i] != 0 && b[i + shift] != 0;
        return z_of_successes(count, static_cast<double>(a.size() - shift), (1 - rate) * (1 - rate));
      };
      for (const std::size_t shift : {1, 2, 8}) check_z(both(first, first, shift), "neighbours");
      check_z(both(first, kept(drop, rate, 2, 0, n), 0), "places");
      check_z(both(first, kept(drop, rate, 1, 1, n), 0), "steps");
    }
}

// Block i of n is skipped with probability drop_path i / (n - 1), separately for each of its branches and for each
// image. In a skipped branch, the final bias has no gradient.
BOOST_AUTO_TEST_CASE(deeper_blocks_are_skipped_more_often) {
  BOOST_TEST(drop_path_at(0.6, 0, 1) == 0);
  ModelConfig config = Workshop(10, 10).experiment().model;
  config.depth = 4;
  constexpr Index images = 800;
  const VisionTransformer model(config, {}, 0, 0.6);
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  Tensor<double> image(Shape{1, 1, 8, 8});
  for (Index i = 0; i < image.size(); ++i) image[i] = RandomStream(2).normal(i);
  Gradients<double> gradients(parameters);
  std::vector<std::vector<double>> skipped(8, std::vector<double>(images));
  for (Index b = 0; b < images; ++b) {
    gradients.reset();
    Tape<double> tape({.parameters = &parameters,
                       .gradients = &gradients,
                       .training = true,
                       .random = RandomStream(3).derive(static_cast<std::uint64_t>(b / 20)),
                       .examples = {.first = b % 20}});
    const Var<double> logits = model.logits<double>(tape, {std::as_const(image).view()});
    Tensor<double> cotangent(logits.shape());
    cotangent[3] = 1;
    tape.backward(logits, std::as_const(cotangent).view());
    gradients.complete();
    for (std::size_t branch = 0; branch < 8; ++branch) {
      const std::string end = branch % 2 == 0 ? ".attn.proj.bias" : ".mlp.fc2.bias";
      const View<double> bias = gradients[model.parameters().find("blocks." + std::to_string(branch / 2) + end)];
      skipped[branch][static_cast<std::size_t>(b)] =
          std::all_of(bias.begin(), bias.end(), [](double g) { return g == 0; });
    }
  }
  const auto count = [&](std::size_t a, std::size_t b) {
    double both = 0;
    for (Index i = 0; i < images; ++i)
      both += skipped[a][static_cast<std::size_t>(i)] * skipped[b][static_cast<std::size_t>(i)];
    return both;
  };
  for (std::size_t branch = 0; branch < 8; ++branch) {
    const double rate = 0.2 * static_cast<double>(branch / 2);
    if (rate == 0)
      BOOST_TEST(count(branch, branch) == 0);
    else
      check_z(z_of_successes(count(branch, branch), images, rate), "branch " + std::to_string(branch));
  }
  check_z(z_of_successes(count(6, 7), images, 0.36), "two branches of a block");
  check_z(z_of_successes(count(5, 7), images, 0.24), "two blocks");
}

BOOST_AUTO_TEST_SUITE_END()
