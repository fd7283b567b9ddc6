// What is not finite is never a result: not an accuracy, not a checkpoint.
#include "heed/train/classification.h"

#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Sixteen images are one batch, and the only update leads far away.
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
    // Without validation images nobody sees before the test that these finite weights have no finite answers.
    BOOST_TEST(std::filesystem::exists(directory + "/best.safetensors") == (validation == 0));
    // The checkpoint is whole, and the run can be asked to go on from it.
    BOOST_CHECK_THROW(run(x, directory, true), Diverged);
    for (const std::string& row : metrics_of(directory)) BOOST_TEST(row.find("nan") == std::string::npos, row);
  }
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
