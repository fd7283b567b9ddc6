// The gradient of a batch does not depend on how the batch is divided, and equals that of one pass over all of it.
#include "support/processes.h"
#include "support/training.h"

#include "heed/nn/vit.h"
#include "heed/base/with_threads.h"
#include "heed/ops/cross_entropy.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/step.h"

#include <boost/test/data/test_case.hpp>
#include <fmt/ranges.h>

#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// Results of a batch.
struct Result11 {
  std::vector<double> gradient;
  BatchResult result;
};

/// A batch of 11 random images with soft targets, for a model with dropout and stochastic depth.
struct Batch11 {
  Experiment x;
  VisionTransformer model{x.model, x.attention, 0.2, 0.3};
  Parameters<double> parameters{model.parameters()};
  Tensor<double> images{Shape{11, 1, 8, 8}}, targets{Shape{11, 10}};
  std::vector<int> labels;
  RandomStream random{9};

  explicit Batch11(const Experiment& experiment = Workshop(10, 10).experiment()) : x(experiment) {
    parameters.initialise(1);
    for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(2).normal(i);
    for (Index i = 0; i < 11; ++i) {
      labels.push_back(static_cast<int>(3 * i % 10));
      targets[10 * i + labels.back()] = 0.7;
      targets[10 * i + 4] += 0.3;
    }
  }

  ClassificationBatch<double> batch() const {
    return {ModelInput<double>{.images = images.view()}, targets.view(), labels.data(), 0.1};
  }

  Result11 in_microbatches(Index microbatch, bool recompute = false) {
    BatchGradient<double> gradient(model, parameters, 11, {.microbatch = microbatch, .recompute = recompute});
    const BatchResult result = gradient.run(batch(), random);
    const Gradients<double>& g = gradient.gradients();
    return {{g.data(), g.data() + g.size()}, result};
  }
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_step)

// Sums of a few hundred terms of order one, added in a different order: 1e-13 allows hundreds of rounding errors.
BOOST_FIXTURE_TEST_CASE(microbatches_make_no_difference, Batch11) {
  Gradients<double> gradients(parameters);
  gradients.reset();
  Tape<double> tape({.parameters = &parameters, .gradients = &gradients, .training = true, .random = random});
  const auto logits = model.logits(tape, ModelInput<double>{.images = images.view()});
  const auto loss = cross_entropy(logits, std::as_const(targets).view(), 0.1, 11);
  tape.backward(loss);
  gradients.complete();
  for (const Index microbatch : {1, 2, 4, 11, 20}) {
    const Result11 cut = in_microbatches(microbatch);
    BOOST_TEST(std::abs(cut.result.loss - *loss.data()) < 1e-13, "microbatches of " << microbatch);
    double worst = 0;
    for (std::size_t i = 0; i < cut.gradient.size(); ++i)
      worst = std::max(worst, std::abs(cut.gradient[i] - gradients.data()[i]));
    BOOST_TEST(worst < 1e-13, "microbatches of " << microbatch);
  }
}

// Preparing tensors once per step gives the same results and gradients as preparing them in each pass, with the noise
// of training.
BOOST_AUTO_TEST_CASE(preparing_once_a_step_makes_no_difference) {
  for (const auto& [mechanism, options] : std::vector<std::pair<std::string, OptionValues>>{
           {"aft", {{"rank", "3"}}},
           {"aft", {{"variant", "conv"}}},
           {"aft", {{"variant", "conv"}, {"sparsity", "gumbel"}, {"tau", "0.8"}}},
           {"aft", {{"variant", "conv"}, {"sparsity", "gumbel"}, {"reparam", "false"}}},
           {"synthesizer", {{"kind", "random"}}}}) {
    Experiment x = Workshop(10, 10).experiment();
    x.model.pool = "mean";
    x.attention.mechanism = {mechanism};
    for (const auto& [name, text] : options) x.attention.options[name] = {text, ""};
    Batch11 all(x);
    for (Index i = 0; i < all.parameters.trainable_size(); ++i)
      all.parameters.data()[i] += 0.3 * RandomStream(8).normal(i);  // no gain is zero
    Gradients<double> gradients(all.parameters);
    Tape<double> tape({.parameters = &all.parameters, .gradients = &gradients, .training = true, .random = all.random});
    const ClassificationBatch<double> batch = all.batch();
    const Var<double> loss = batch.loss(batch.logits(all.model, tape, {0, 11}, nullptr), {0, 11}, 11);
    tape.backward(loss);
    gradients.complete();
    const Result11 cut = all.in_microbatches(4);
    BOOST_TEST(std::abs(cut.result.loss - *loss.data()) < 1e-13, mechanism);
    double worst = 0;
    for (Index i = 0; i < gradients.trainable_size(); ++i)
      worst = std::max(worst, std::abs(cut.gradient[static_cast<std::size_t>(i)] - gradients.data()[i]));
    BOOST_TEST(worst < 1e-13, mechanism << ": " << worst);
  }
}

BOOST_FIXTURE_TEST_CASE(threads_make_no_difference_to_a_bit, Batch11) {
  const Result11 alone = in_microbatches(2);
  for (const int count : {1, 2, 3}) {
    const WithThreads with(count);
    BOOST_TEST(in_microbatches(2).gradient == alone.gradient, boost::test_tools::per_element());
  }
}

BOOST_FIXTURE_TEST_CASE(computing_blocks_again_changes_no_bit, Batch11) {
  const Result11 kept = in_microbatches(4);
  for (const int count : {1, 2}) {
    const WithThreads with(count);
    const Result11 again = in_microbatches(4, true);
    BOOST_TEST(again.result.loss == kept.result.loss);
    BOOST_TEST(again.gradient == kept.gradient, boost::test_tools::per_element());
  }
}

/// Returns the gradient of a step of a model so large that threads can share its products.
template <class T>
std::vector<T> large_step(LaneMemory memory) {
  ModelConfig config = Workshop(10, 10).experiment().model;
  config.dim = 128, config.hidden = 1024, config.depth = 1;
  const VisionTransformer model(config, {}, 0.1);
  Parameters<T> parameters(model.parameters());
  parameters.initialise(1);
  Tensor<T> images(Shape{150, 1, 8, 8}), targets(Shape{150, 10});
  for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<T>(RandomStream(2).normal(i));
  for (Index i = 0; i < 150; ++i) targets[10 * i + i % 10] = 1;
  const std::vector<int> labels(150, 0);
  BatchGradient<T> gradient(model, parameters, 150, {.microbatch = 16}, one_process(), memory);
  gradient.run(ClassificationBatch<T>(ModelInput<T>{.images = images.view()}, targets.view(), labels.data()),
               RandomStream(1));
  return {gradient.gradients().data(), gradient.gradients().data() + gradient.gradients().size()};
}

// Ten microbatches in ten lanes. If lanes are streamed, threads share each operation; otherwise they take whole lanes.
BOOST_AUTO_TEST_CASE(streaming_lanes_changes_no_bit) {
  const std::vector<float> kept = large_step<float>(LaneMemory::per_lane);
  const std::vector<double> kept_in_double = large_step<double>(LaneMemory::per_lane);
  for (const int count : {1, 2, 3}) {
    const WithThreads with(count);
    BOOST_TEST((large_step<float>(LaneMemory::streamed) == kept), count << " threads");
    BOOST_TEST((large_step<double>(LaneMemory::streamed) == kept_in_double), count << " threads, double");
  }
}

// A batch of 11 in lanes of one image and of two, with a penalty that must be added once.
BOOST_AUTO_TEST_CASE(processes_make_no_difference_to_a_bit) {
  Experiment x = Workshop(10, 10).experiment();
  x.model.pool = "mean";
  x.attention.mechanism = {"aft"};
  for (const auto& [name, text] : OptionValues{{"variant", "conv"}, {"sparsity", "entropy"}, {"coef", "0.5"}})
    x.attention.options[name] = {text, ""};
  Batch11 all(x);
  for (const Index microbatch : {1, 2})
    for (const LaneMemory memory : {LaneMemory::per_lane, LaneMemory::streamed}) {
      const Result11 alone = all.in_microbatches(microbatch);
      for (const int count : {2, 4}) {
        std::vector<Result11> results(static_cast<std::size_t>(count));
        in_processes(count, [&](Ranks& ranks) {
          // A process accesses neither examples nor prepared tensors of other processes.
          Batch11 own(x);
          BatchGradient<double> gradient(own.model, own.parameters, 11, {.microbatch = microbatch}, ranks, memory);
          const ExampleRange share = gradient.share()(11);
          for (Index i = 0; i < own.images.size(); ++i)
            if (const Index image = i / 64; image < share.first || image >= share.first + share.count)
              own.images[i] = std::numeric_limits<double>::quiet_NaN();
          const BatchResult result = gradient.run(own.batch(), own.random);
          const Gradients<double>& g = gradient.gradients();
          results[static_cast<std::size_t>(ranks.rank())] = {{g.data(), g.data() + g.size()}, result};
        });
        for (const Result11& result : results) {
          BOOST_TEST((result.gradient == alone.gradient),
                     "microbatches of " << microbatch << ", " << count << " processes");
          BOOST_TEST(result.result.loss == alone.result.loss);
          BOOST_TEST(result.result.correct == alone.result.correct);
          BOOST_TEST(result.result.terms == 11);
        }
      }
    }
}

/// Collects names and first values of all tensors passed to an observer.
struct Seen : TensorObserver<double> {
  void observe(const ObservedTensor<double>& tensor) override {
    lines.push_back(fmt::format("{}{} {}: {}", tensor.gradient ? "gradient of " : "", names.of(tensor),
                                tensor.values.shape(), tensor.values[0]));
  }

  ResultNames names;
  std::vector<std::string> lines;
};

// Threads process the microbatches in any order; the observer receives only the first.
BOOST_FIXTURE_TEST_CASE(an_observer_is_shown_the_first_microbatch, Batch11) {
  const ClassificationBatch<double> all = batch();
  const auto seen = [&](int count, bool observed) {
    const WithThreads with(count);
    Seen observer;
    BatchGradient<double> gradient(model, parameters, 11, {.microbatch = 2});
    gradient.observe(observed ? &observer : nullptr);
    gradient.run(all, random);
    return observer.lines;
  };
  const std::vector<std::string> alone = seen(1, true);
  BOOST_TEST(alone.front().starts_with("patch_embed"), alone.front());
  BOOST_TEST(alone.front().find("[2, ") != std::string::npos, alone.front());
  BOOST_TEST(std::count_if(alone.begin(), alone.end(), [](auto& s) { return s.starts_with("cross_entropy"); }) == 1);
  BOOST_TEST(alone.back().starts_with("gradient of patch_embed"), alone.back());
  for (const int count : {2, 3}) BOOST_TEST(seen(count, true) == alone, boost::test_tools::per_element());
  BOOST_TEST(seen(1, false).empty());
}

// All processes report the first non-finite value, which is in the lanes of one of them.
BOOST_FIXTURE_TEST_CASE(processes_agree_on_what_is_not_finite, Batch11) {
  images[64 * 9] = std::numeric_limits<double>::infinity();
  const ClassificationBatch<double> all = batch();
  const auto where = [&](Ranks& ranks) {
    Batch11 own;  // each process prepares its own tensors
    BatchGradient<double> gradient(own.model, own.parameters, 11, {.microbatch = 1}, ranks);
    gradient.run(all, random);
    return gradient.first_non_finite();
  };
  const std::string alone = where(one_process());
  BOOST_TEST(alone != "a sum over the batch");
  std::vector<std::string> found(4);
  in_processes(4, [&](Ranks& ranks) { found[static_cast<std::size_t>(ranks.rank())] = where(ranks); });
  for (const std::string& text : found) BOOST_TEST(text == alone);
}

BOOST_FIXTURE_TEST_CASE(processes_that_have_no_subtree_are_refused, Batch11) {
  const auto error_with = [&](int processes, Index batch, Index microbatch) {
    std::vector<std::string> errors(static_cast<std::size_t>(processes));
    in_processes(processes, [&](Ranks& ranks) {
      errors[static_cast<std::size_t>(ranks.rank())] =
          error_of([&] { BatchGradient<double>(model, parameters, batch, {.microbatch = microbatch}, ranks); });
    });
    for (const std::string& error : errors) BOOST_TEST(error == errors[0]);
    return errors[0];
  };
  BOOST_TEST(error_with(4, 11, 4) == "[train] batch = 11 in microbatches of 4: expected 1 or 2 processes, found 4");
  BOOST_TEST(error_with(3, 128, 8) ==
             "[train] batch = 128 in microbatches of 8: expected 1, 2, 4, 8 or 16 processes, found 3");
  BOOST_TEST(error_with(2, 8, 8) == "[train] batch = 8 in microbatches of 8: expected 1 process, found 2");
  BOOST_TEST(error_with(8, 64, 8) == "no error");
}

// Recomputed blocks have the same bits in float with products in bfloat16, on CPUs that support these.
BOOST_AUTO_TEST_CASE(nor_do_blocks_with_products_in_bfloat16) {
  if (kernels::bf16_obstacle()) {
    BOOST_TEST_MESSAGE("skipped: " << kernels::bf16_obstacle());
    return;
  }
  const Experiment x = Workshop(10, 10).experiment();
  const VisionTransformer model(x.model, x.attention);
  Parameters<float> parameters(model.parameters());
  parameters.initialise(1);
  Tensor<float> images(Shape{6, 1, 8, 8}), targets(Shape{6, 10});
  for (Index i = 0; i < images.size(); ++i) images[i] = static_cast<float>(RandomStream(2).normal(i));
  for (Index i = 0; i < 6; ++i) targets[10 * i] = 1;
  const std::vector<int> labels(6, 0);
  std::vector<std::vector<float>> results;
  for (const bool recompute : {false, true}) {
    BatchGradient<float> gradient(model, parameters, 6, {.microbatch = 4, .dtype = "bf16", .recompute = recompute});
    gradient.run(ClassificationBatch<float>(ModelInput<float>{.images = images.view()}, targets.view(), labels.data()),
                 RandomStream(1));
    results.emplace_back(gradient.gradients().data(), gradient.gradients().data() + gradient.gradients().size());
  }
  BOOST_TEST(results[0] == results[1], boost::test_tools::per_element());
}

// Operations of the model and the loss have times, forward and backward; the sum cannot exceed the threads' time.
BOOST_DATA_TEST_CASE_F(Batch11, a_profile_accounts_for_the_operations, boost::unit_test::data::make({false, true}),
                       recompute) {
  BatchGradient<double> gradient(model, parameters, 11, {.microbatch = 2, .recompute = recompute});
  const auto step = [&] { gradient.run(batch(), random); };
  step();
  BOOST_TEST(gradient.profile().rows().empty());
  gradient.start_profile();
  const auto start = Profile::Clock::now();
  step();
  const double most = threads() * std::chrono::duration<double>(Profile::Clock::now() - start).count();
  std::set<std::string> names;
  double sum = 0;
  const Profile profile = gradient.profile();
  for (const Profile::Row& row : profile.rows()) {
    BOOST_TEST(names.insert(row.operation).second, row.operation << " has two rows");
    BOOST_TEST(row.forward > 0);
    BOOST_TEST(row.backward > 0, row.operation);
    sum += row.total();
  }
  for (const char* name : {"linear", "layer_norm_linear", "gelu", "softmax", "cross_entropy", "patch_embedding"})
    BOOST_TEST(names.contains(name), name);
  BOOST_TEST(sum < most);
}

// Each operation of each layer has its own row, with both passes; the loss belongs to no layer.
BOOST_DATA_TEST_CASE_F(Batch11, a_profile_by_layer_accounts_for_both_passes,
                       boost::unit_test::data::make({false, true}), recompute) {
  BatchGradient<double> gradient(model, parameters, 11, {.microbatch = 2, .recompute = recompute});
  gradient.start_profile(true);
  gradient.run(batch(), random);
  std::set<std::string> rows;
  const Profile profile = gradient.profile();
  for (const Profile::Row& row : profile.rows()) {
    const std::string place = fmt::format("{} {}", row.layer ? *row.layer : "", row.operation);
    BOOST_TEST(rows.insert(place).second, place << " has two rows");
    BOOST_TEST(row.forward > 0, place);
    BOOST_TEST(row.backward > 0, place);
  }
  for (const char* place :
       {"blocks.0.attn.proj linear", "blocks.1.attn.proj linear", "patch_embed.proj patch_embedding", " cross_entropy"})
    BOOST_TEST(rows.contains(place), place << " is not in " << fmt::format("{}", fmt::join(rows, ", ")));
}

BOOST_AUTO_TEST_SUITE_END()
