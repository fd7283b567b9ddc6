// Non-finite values are never a result: neither an accuracy nor a checkpoint.
#include "heed/train/tasks/classification.h"

#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns an experiment of one epoch with batches of sixteen images, whose first update is very large.
Experiment one_leap(const Workshop& workshop, Index validation) {
  Experiment x = workshop.experiment();
  x.data.validation = validation;
  x.train.epochs = 1;
  x.optim.name = "sgd";
  x.optim.lr = 1e30;
  x.optim.clip = 0;
  x.optim.warmup_epochs = 0;
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_divergence)

BOOST_AUTO_TEST_CASE(a_leap_in_the_last_step_is_divergence) {
  for (const Index validation : {20, 0}) {
    const Workshop workshop(16 + validation);
    const Experiment x = one_leap(workshop, validation);
    const std::string directory = workshop / "run";
    BOOST_CHECK_THROW(run(x, directory), Diverged);
    // Without validation images, only the evaluation on test images detects that these finite weights give non-finite
    // outputs.
    BOOST_TEST(std::filesystem::exists(directory + "/best.safetensors") == (validation == 0));
    // The checkpoint is complete, and the run can be resumed from it.
    BOOST_CHECK_THROW(run(x, directory, true), Diverged);
    for (const std::string& row : metrics_of(directory)) BOOST_TEST(row.find("nan") == std::string::npos, row);
  }
}

BOOST_AUTO_TEST_CASE(divergence_names_the_first_place) {
  const Workshop workshop(48 + 20);
  Experiment x = one_leap(workshop, 20);
  try {
    run(x, workshop / "run");
    BOOST_ERROR("the second step did not diverge");
  } catch (const Diverged& error) {
    const std::string message = error.what();
    for (const char* piece : {"step 2 of epoch 1", "first not finite: the result of ", " in blocks.0", "after step 0"})
      BOOST_TEST(message.find(piece) != std::string::npos, "'" << message << "' lacks " << piece);
  }
}

// Only keys that have an effect are named. The message has optim.lr, although a step of a warm-up has a smaller rate.
BOOST_AUTO_TEST_CASE(divergence_names_the_keys_to_change) {
  const Workshop workshop(48 + 20);
  const auto advice = [&](const std::string& schedule, Index warm_up) {
    Experiment x = one_leap(workshop, 20);
    x.optim.schedule = schedule, x.optim.warmup_steps = warm_up;
    std::string text;
    try {
      run(x, workshop / (schedule + std::to_string(warm_up)));
    } catch (const Diverged& error) {
      text = error.what();
    }
    return text.substr(text.rfind(';') + 1);
  };
  const std::string lr = " start another run with a smaller optim.lr (1e+30 here)";
  BOOST_TEST(advice("cosine", 0) == lr + " or a longer optim.warmup_epochs");
  BOOST_TEST(advice("cosine", 4) == lr + " or a longer optim.warmup_steps");
  BOOST_TEST(advice("constant", 0) == lr);
}

// The message names the step of the newest checkpoint: that of an interruption, or one within the epoch.
BOOST_AUTO_TEST_CASE(divergence_names_the_step_of_the_saved_weights) {
  const Workshop workshop(48 + 20);
  Experiment x = one_leap(workshop, 20);
  const auto says_step_1 = [](const Diverged& error) {
    const std::string text = error.what();
    for (const std::string piece : {"step 2 of epoch 1", "last.safetensors has the weights after step 1"})
      BOOST_TEST(text.find(piece) != std::string::npos, text);
    return true;
  };
  BOOST_TEST((run_until(1, x, workshop / "interrupted") == Outcome::interrupted));
  BOOST_CHECK_EXCEPTION(run(x, workshop / "interrupted", true), Diverged, says_step_1);
  x.train.checkpoint_steps = 1;
  BOOST_CHECK_EXCEPTION(run(x, workshop / "saved"), Diverged, says_step_1);
}

// All images are black except the first, which overflows: its batch has a non-finite loss.
BOOST_AUTO_TEST_CASE(a_step_that_is_not_finite_is_skipped_if_asked) {
  const Workshop workshop(64, 16);
  for (const char* name : {"/train-images-idx3-ubyte", "/t10k-images-idx3-ubyte"}) {
    std::string images = read_file(workshop.data() + name);
    std::fill(images.begin() + 16, images.end(), '\0');
    if (name[1] == 't' && name[2] == 'r') images[16] = static_cast<char>(255);
    write_file(workshop.data() + name, images);
  }
  Experiment x = workshop.experiment();
  x.data.validation = 0;
  x.data.mean = {0};
  x.data.std = {1e-40};
  x.train.log_steps = true;
  BOOST_CHECK_THROW(run(x, workshop / "stopped"), Diverged);
  x.train.on_nonfinite = "skip";
  struct Skipped : TrainObserver {
    std::vector<Index> counts;
    void epoch(const EpochReport& report) override {
      counts.push_back(report.skipped);
      BOOST_TEST(std::isfinite(report.train.loss));
    }
  } skipped;
  TrainOptions options;
  options.run = workshop / "run";
  BOOST_TEST((train(x, options, skipped) == Outcome::finished));
  BOOST_TEST(skipped.counts == (std::vector<Index>{1, 1, 1}), boost::test_tools::per_element());
  Index without_loss = 0;
  for (const std::string& row : metrics_of(options.run)) {
    without_loss += row.starts_with("step,") && row.find(",,,") != std::string::npos;
    BOOST_TEST(row.find("nan") == std::string::npos, row);
  }
  BOOST_TEST(without_loss == 3);
  for (const Index steps : {1, 2, 3, 6, 9}) run_until(steps, x, workshop / "resumed", steps > 1);
  run(x, workshop / "resumed", true);
  check_same_run(options.run, workshop / "resumed");
}

// The first update is very large, later steps are skipped, and validation detects the result.
BOOST_AUTO_TEST_CASE(weights_that_answer_nothing_are_said_to_have_diverged) {
  const Workshop workshop(48 + 20);
  Experiment x = one_leap(workshop, 20);
  x.train.on_nonfinite = "skip";
  BOOST_CHECK_EXCEPTION(run(x, workshop / "run"), Diverged, [](const Diverged& error) {
    const std::string text = error.what();
    for (const std::string piece :
         {"training diverged by step 3: the model's outputs are not finite", "2 of 3 steps of the epoch were skipped",
          "last.safetensors has the weights after step 0", "smaller optim.lr"})
      BOOST_TEST(text.find(piece) != std::string::npos, text);
    return text.find("-nan") == std::string::npos;
  });
}

BOOST_AUTO_TEST_CASE(answers_that_are_no_numbers_are_wrong) {
  const std::vector<double> logits{NAN, NAN, NAN, 0, NAN, 1, 3, 2, 1};
  const std::vector<int> labels{0, 0, 0};
  const Tensor<double> targets(Shape{3, 3});
  const ClassificationBatch<double> batch({}, targets.view(), labels.data());
  const View<const double> rows{logits.data(), Shape{3, 3}};
  std::vector<double> counts(16);
  BOOST_TEST(batch.correct(rows, {0, 3}) == 1);
  const Score score = batch.judge(rows, {0, 3}, counts);
  BOOST_TEST(score.correct == 1);
  BOOST_TEST(!std::isfinite(score.loss));
}

BOOST_AUTO_TEST_SUITE_END()
