// train.ema: the exponential moving average of the weights.
#include "heed/io/safetensors.h"

#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

std::vector<double> tensor_of(const std::string& directory, const std::string& name) {
  const SafetensorsFile file(directory + "/last.safetensors");
  const Tensor<double> tensor = file.read<double>(name);
  return {tensor.data(), tensor.data() + tensor.size()};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_average)

// average = ema average + (1 - ema) weights after each update, from the initial weights on.
BOOST_AUTO_TEST_CASE(weights_are_averaged_update_by_update) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.dtype = "f64";
  x.train.ema = 0.7;
  const std::string directory = workshop / "run", name = "blocks.0.attn.qkv.weight";
  BOOST_TEST((run_until(1, x, directory) == Outcome::interrupted));
  Experiment untrained = x;
  untrained.train.max_steps = 1;
  untrained.optim.lr = 0;  // the update changes nothing, so the run saves the initial weights
  untrained.optim.min_lr = 0;
  run(untrained, workshop / "untrained");
  std::vector<double> expected = tensor_of(workshop / "untrained", name);
  for (Index steps = 1; steps <= 9; ++steps) {
    if (steps > 1) run_until(steps, x, directory, true);
    const std::vector<double> weights = tensor_of(directory, name);
    const std::vector<double> average = tensor_of(directory, "heed.average." + name);
    double moved = 0, error = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      expected[i] = 0.7 * expected[i] + 0.3 * weights[i];
      moved = std::max(moved, std::abs(weights[i] - expected[i]));
      error = std::max(error, std::abs(average[i] - expected[i]));
    }
    // Rounding of a few sums of numbers below 1; an average late by one update would differ by 3/7 of `moved`.
    BOOST_TEST(error < 1e-15);
    BOOST_TEST(moved > 1e-6);
  }
}

// With --init, the average begins with the weights of the file, which a learning rate of 0 leaves unchanged.
BOOST_AUTO_TEST_CASE(an_average_begins_with_the_given_weights) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.dtype = "f64";
  BOOST_TEST((run(x, workshop / "given") == Outcome::finished));
  x.train.seed += 1;
  x.train.ema = 0.7;
  x.optim.lr = 0;
  x.optim.min_lr = 0;
  const std::string directory = workshop / "run", name = "blocks.0.attn.qkv.weight";
  BOOST_TEST((run(x, directory, false, workshop / "given/last.safetensors") == Outcome::finished));
  const std::vector<double> given = tensor_of(workshop / "given", name);
  BOOST_TEST(tensor_of(directory, name) == given, boost::test_tools::per_element());
  const std::vector<double> average = tensor_of(directory, "heed.average." + name);
  for (std::size_t i = 0; i < given.size(); ++i) BOOST_TEST(std::abs(average[i] - given[i]) < 1e-15);  // rounding
}

// landmark_index holds indices of tokens.
BOOST_AUTO_TEST_CASE(buffers_are_not_averaged) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.model.pool = "mean";
  x.attention.mechanism = {"soft"};
  x.attention.options = {{"sampling", {"random", "test"}}, {"landmarks", {"2", "test"}}};
  x.train.ema = 0.999;
  const std::string directory = workshop / "run";
  BOOST_TEST((run(x, directory) == Outcome::finished));
  const std::string name = "blocks.0.attn.landmark_index";
  BOOST_TEST(tensor_of(directory, "heed.average." + name) == tensor_of(directory, name),
             boost::test_tools::per_element());
}

// Batch-norm statistics are copied, not averaged: with the initial statistics, the averaged weights would be a
// different model.
BOOST_AUTO_TEST_CASE(statistics_of_batch_norm_are_the_models) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.model.family = "xcit";
  x.model.cls_depth = 1;
  x.train.epochs = 1;
  x.train.ema = 0.9;
  const std::string directory = workshop / "run", name = "blocks.0.local_mp.bn.running_mean";
  BOOST_TEST((run(x, directory) == Outcome::finished));
  const std::vector<double> statistics = tensor_of(directory, name);
  BOOST_TEST(std::any_of(statistics.begin(), statistics.end(), [](double mean) { return mean != 0; }));
  BOOST_TEST(tensor_of(directory, "heed.average." + name) == statistics, boost::test_tools::per_element());
  const Tensor<double> best = SafetensorsFile(directory + "/best.safetensors").read<double>(name);
  BOOST_TEST(std::vector<double>(best.begin(), best.end()) == statistics, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
