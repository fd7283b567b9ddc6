// Optimisers, schedule and clipping compared with the formulas in plain double.
#include "support/training.h"

#include "heed/train/optimizer.h"

#include <cmath>
#include <map>
#include <numbers>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns a list of a matrix [rows, 7] with weight decay, a vector without decay, and a buffer.
ParameterList list_of(Index rows) {
  ParameterList list;
  list.add({"weight", {rows, 7}, Initial::normal(0.5)});
  list.add({"bias", {5}, Initial::normal(0.5), false});
  list.add({"buffer", {3}, Initial::constant(2), false, false});
  return list;
}

/// Runs `steps` updates with given gradients and learning rates in heed's optimiser and, for every weight, in `slow`, a
/// function (weight, gradient, decay, number of this weight's update from 1, lr, state[2]) -> weight. The first
/// `frozen` updates omit tensor 0. Returns the largest difference.
template <class T, class Slow>
double largest_difference(const OptimConfig& config, Index rows, int steps, const Slow& slow, int frozen = 0) {
  Parameters<T> parameters(list_of(rows));
  parameters.initialise(3);
  Gradients<T> gradients(parameters);
  Optimizer<T> optimizer(config, parameters);
  std::vector<double> weights(parameters.data(), parameters.data() + parameters.size());
  std::vector<std::array<double, 2>> state(weights.size());
  for (int step = 1; step <= steps; ++step) {
    const double lr = 0.01 * step, factor = step == 2 ? 0.5 : 1.0;
    for (Index i = 0; i < gradients.size(); ++i)
      gradients.data()[i] = static_cast<T>(RandomStream(static_cast<std::uint64_t>(step)).uniform(i, -1, 1));
    const bool leave_out = step <= frozen;
    optimizer.step(parameters, gradients, {lr, config.weight_decay}, factor,
                   leave_out ? std::vector<ParameterId>{0} : std::vector<ParameterId>{});
    for (ParameterId id = leave_out; id < 2; ++id)
      for (Index i = parameters.offset(id); i < parameters.offset(id) + parameters[id].size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        weights[at] = slow(weights[at], factor * static_cast<double>(gradients.data()[i]),
                           id == 0 ? config.weight_decay : 0.0, id == 0 ? step - frozen : step, lr, state[at]);
      }
  }
  BOOST_TEST(optimizer.steps() == steps);
  double worst = 0;
  for (ParameterId id = 0; id < 3; ++id)
    for (Index i = 0; i < parameters[id].size(); ++i)
      worst = std::max(worst, std::abs(static_cast<double>(parameters[id][i]) -
                                       weights[static_cast<std::size_t>(parameters.offset(id) + i)]));
  return worst;
}

void check_clipping(Index rows) {
  const Parameters<float> parameters(list_of(rows));
  Gradients<float> gradients(parameters);
  double sum = 0;
  for (const ParameterId id : {0, 1})
    for (float& g : gradients[id]) {
      g = static_cast<float>(RandomStream(1).uniform(&g - gradients.data(), -1, 1));
      sum += static_cast<double>(g) * static_cast<double>(g);
    }
  const double norm = std::sqrt(sum);
  // Sums of up to 2.8 million positive terms in double, in different orders, differ by about 1e-14.
  BOOST_TEST(std::abs(clip_by_norm(gradients, 0).norm - norm) < 1e-12 * norm);
  BOOST_TEST(clip_by_norm(gradients, 0).factor == 1);
  BOOST_TEST(clip_by_norm(gradients, norm + 1).factor == 1);
  BOOST_TEST(std::abs(clip_by_norm(gradients, 3).factor - 3 / (norm + 1e-6)) < 1e-12);
  const Clipping alone = clip_by_norm(gradients, 3);
  BOOST_TEST(std::abs(alone.norm - norm) < 1e-12 * norm);  // before clipping
  const WithThreads with(3);
  BOOST_TEST(clip_by_norm(gradients, 3).norm == alone.norm);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_optimizer)

// Weights are below 3, updates below 0.4: errors of 20 steps are within 1e-14 in double, 1e-5 in float.
BOOST_AUTO_TEST_CASE(adamw_follows_its_formulas) {
  OptimConfig config;
  config.betas = {0.8, 0.95};
  config.eps = 1e-3;
  config.weight_decay = 0.3;
  const auto slow = [&](double w, double g, double decay, int step, double lr, std::array<double, 2>& s) {
    s[0] = 0.8 * s[0] + 0.2 * g;
    s[1] = 0.95 * s[1] + 0.05 * g * g;
    const double mean = s[0] / (1 - std::pow(0.8, step)), square = s[1] / (1 - std::pow(0.95, step));
    return w - lr * decay * w - lr * mean / (std::sqrt(square) + 1e-3);
  };
  BOOST_TEST(largest_difference<double>(config, 3, 20, slow) < 1e-14);
  BOOST_TEST(largest_difference<float>(config, 3, 20, slow) < 1e-5);
  BOOST_TEST(largest_difference<float>(config, 10'000, 3, slow) < 1e-5);
  BOOST_TEST(largest_difference<double>(config, 3, 20, slow, 7) < 1e-14);
  for (const int count : {1, 3}) {
    const WithThreads with(count);
    BOOST_TEST(largest_difference<double>(config, 10'000, 3, slow) < 1e-14);
  }
}

BOOST_AUTO_TEST_CASE(sgd_follows_its_formula) {
  OptimConfig config;
  config.name = "sgd";
  config.momentum = 0.7;
  config.weight_decay = 0.3;
  const auto slow = [&](double w, double g, double decay, int step, double lr, std::array<double, 2>& s) {
    s[0] = (step == 1 ? 0.0 : 0.7 * s[0]) + g + decay * w;
    return w - lr * s[0];
  };
  BOOST_TEST(largest_difference<double>(config, 3, 20, slow) < 1e-14);
  BOOST_TEST(largest_difference<float>(config, 10'000, 3, slow) < 1e-5);
  BOOST_TEST(largest_difference<double>(config, 3, 20, slow, 7) < 1e-14);
}

BOOST_AUTO_TEST_CASE(all_frozen_tensors_stay) {
  for (const char* name : {"adamw", "sgd"}) {
    OptimConfig config;
    config.name = name;
    Parameters<double> parameters(list_of(3));
    parameters.initialise(3);
    const std::vector<double> before(parameters.data(), parameters.data() + parameters.size());
    Gradients<double> gradients(parameters);
    std::fill_n(gradients.data(), gradients.size(), 0.5);
    Optimizer<double> optimizer(config, parameters);
    optimizer.step(parameters, gradients, {0.1, 0.3}, 1, {0, 1});
    BOOST_TEST(std::equal(before.begin(), before.end(), parameters.data()), name);
    for (const auto& mean : optimizer.state())
      for (const double value : mean.values) BOOST_TEST(value == 0);
    BOOST_TEST(optimizer.steps() == 1);
    BOOST_TEST(optimizer.left_out() == (std::vector<Index>{1, 1, 0}), boost::test_tools::per_element());
  }
}

// 10 steps per epoch, warm-up of one and a half epochs, 55 steps: half-way along the cosine at 15 + 20.
BOOST_AUTO_TEST_CASE(learning_rates_at_known_points) {
  OptimConfig config;
  config.lr = 2;
  config.min_lr = 0.5;
  config.warmup_epochs = 1.5;
  const auto at = [&](Index step) { return learning_rate(config, step, 10, 55); };
  const auto close = [](double a, double b) { return std::abs(a - b) < 1e-14; };
  BOOST_TEST(close(at(0), 2.0 / 15));
  BOOST_TEST(close(at(7), 2.0 * 8 / 15));
  BOOST_TEST(close(at(14), 2));
  BOOST_TEST(close(at(15), 2));
  BOOST_TEST(close(at(35), 1.25));
  BOOST_TEST(close(at(25), 0.5 + 1.5 * (1 + std::sqrt(0.5)) / 2));
  BOOST_TEST(close(at(54), 0.5 + 0.75 * (1 - std::cos(std::numbers::pi / 40))));
  BOOST_TEST(close(at(55), 0.5));
  BOOST_TEST(close(at(100), 0.5));
  config.warmup_epochs = 0;
  BOOST_TEST(close(at(0), 2));
  config.warmup_epochs = 100;  // longer than the run
  BOOST_TEST(close(at(54), 2.0 * 55 / 1000));
  // A fraction of an epoch is rounded to whole steps, here three and two.
  config.warmup_epochs = 0.26;
  BOOST_TEST(close(at(0), 2.0 / 3));
  config.warmup_epochs = 0.24;
  BOOST_TEST(close(at(0), 1));
  config.schedule = "constant";
  for (const Index step : {0, 1, 54}) BOOST_TEST(at(step) == 2);
}

// Every schedule at every step of 55, compared with its formula: without warm-up, and with warm-ups of 7 steps, of 1.5
// epochs of 10 steps, and of the whole run. A nonzero number of warm-up steps overrides the epochs.
BOOST_AUTO_TEST_CASE(learning_rates_at_all_steps) {
  struct WarmUp {
    Index steps;
    double epochs, expected;
  };
  OptimConfig config;
  config.lr = 2;
  for (const double least : {0.0, 0.5})
    for (const auto& [steps, epochs, warm] : {WarmUp{0, 0, 0}, {7, 0, 7}, {0, 1.5, 15}, {7, 1.5, 7}, {55, 0, 55}}) {
      config.min_lr = least, config.warmup_steps = steps, config.warmup_epochs = epochs;
      for (Index s = 0; s <= 56; ++s) {
        const double t = static_cast<double>(s), up = (t + 1) / warm, along = (t - warm) / (55 - warm);
        const double past = warm == 55 ? t - 55 : along, left = std::max(0.0, 1 - past);
        const std::map<std::string, double> expected{
            {"constant", 2},
            {"linear", t < warm ? 2 * up : least + (2 - least) * left},
            {"cosine", t < warm ? 2 * up : least + (2 - least) * (1 - std::cos(std::numbers::pi * left)) / 2},
            {"rsqrt", t < warm ? 2 * up / std::sqrt(warm) : 2 / std::sqrt(t + 1)}};
        for (const auto& [name, rate] : expected) {
          config.schedule = name;
          BOOST_TEST(std::abs(learning_rate(config, s, 10, 55) - rate) < 1e-14,
                     name << ", warm-up " << warm << ", step " << s);
        }
      }
    }
}

// The decay follows a cosine to its final value, which may be 0; -1 keeps the decay constant.
BOOST_AUTO_TEST_CASE(weight_decay_may_end_at_zero) {
  OptimConfig config;
  config.weight_decay = 0.3;
  config.weight_decay_end = -1;
  for (const Index step : {0, 5, 10}) BOOST_TEST(rates_of(config, step, 2, 10).weight_decay == 0.3);
  config.weight_decay_end = 0;
  BOOST_TEST(rates_of(config, 0, 2, 10).weight_decay == 0.3);
  BOOST_TEST(std::abs(rates_of(config, 5, 2, 10).weight_decay - 0.15) < 1e-15);
  BOOST_TEST(rates_of(config, 10, 2, 10).weight_decay == 0);
  BOOST_TEST(rates_of(config, 5, 2, 10).lr == learning_rate(config, 5, 2, 10));
}

// Only weights are averaged; other tensors are copied from the model.
BOOST_AUTO_TEST_CASE(an_average_takes_buffers_as_they_are) {
  for (const Index rows : {3, 2'000}) {  // the second spans several ranges of weights
    Parameters<double> average(list_of(rows)), now(list_of(rows));
    average.initialise(1), now.initialise(2);
    now[2][1] = 5;
    const std::vector<double> before(average.data(), average.data() + average.size());
    update_average(average, now, 0.75);
    for (ParameterId id = 0; id < 3; ++id)
      for (Index i = 0; i < average[id].size(); ++i) {
        const double old = before[static_cast<std::size_t>(average.offset(id) + i)];
        BOOST_REQUIRE(average[id][i] == (id == 2 ? now[id][i] : 0.75 * old + 0.25 * now[id][i]));
      }
  }
}

// Beyond 2^21 weights, a partial sum of the norm may cover several ranges.
BOOST_AUTO_TEST_CASE(clipping_by_the_global_norm) {
  for (const Index rows : {20'000, 299'594, 400'000}) check_clipping(rows);
}

// The matrix, which has several ranges, is scaled by its own norm, about sqrt(70,000 / 3). The norm of the vector, at
// most sqrt(5), is below the limit, 3.
BOOST_AUTO_TEST_CASE(clipping_of_each_tensor_by_its_own_norm) {
  const Parameters<double> parameters(list_of(10'000));
  Gradients<double> gradients(parameters);
  for (Index i = 0; i < gradients.size(); ++i) gradients.data()[i] = RandomStream(1).uniform(i, -1, 1);
  const Gradients<double> before = gradients;
  double sum = 0;
  for (const double g : before[0]) sum += g * g;
  const double factor = 3 / (std::sqrt(sum) + 1e-6);
  clip_each(gradients, 3);
  // Sums of 70,000 positive terms in a different order differ by about 1e-14.
  for (Index i = 0; i < 70'000; ++i) BOOST_REQUIRE(std::abs(gradients[0][i] - factor * before[0][i]) < 1e-13);
  for (Index i = 0; i < 5; ++i) BOOST_TEST(gradients[1][i] == before[1][i]);
}

BOOST_AUTO_TEST_SUITE_END()
