// Patch classification: overlaps, the head on patches, and errors.
#include "heed/nn/families.h"
#include "src/train/tasks/tasks.h"
#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns an experiment whose model classifies the 4 patches of images of 8 x 8 pixels.
Experiment of_patches(const Workshop& workshop) {
  Experiment x = workshop.experiment();
  x.model.output = "tokens";
  return x;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_dense)

// Rows are true classes. Three of four patches of class 0 are correct, and one patch of class 1 is predicted as class
// 0: 3 / 5. Two of three patches of class 1 are correct: 2 / 4. Class 2 does not occur.
BOOST_AUTO_TEST_CASE(overlaps_by_hand) {
  const std::vector<double> overlaps = overlaps_of({3, 1, 0, 1, 2, 0, 0, 0, 0}, 3);
  BOOST_TEST(overlaps[0] == 3.0 / 5);
  BOOST_TEST(overlaps[1] == 2.0 / 4);
  BOOST_TEST(overlaps[2] == -1);
  const Workshop workshop;
  Experiment x = of_patches(workshop);
  x.model.classes = 3;
  const std::unique_ptr<Model> model = make_model(x);
  const std::unique_ptr<Task<double>> task = make_task<double>(x, *model);
  Evaluation evaluation{{7, 3.5, 5}, {3, 1, 0, 1, 2, 0, 0, 0, 0}};
  task->conclude(evaluation);
  BOOST_TEST(std::abs(evaluation.score.accuracy() - (0.6 + 0.5) / 2) < 1e-15);
  const std::string report = task->report(evaluation);
  for (const char* piece :
       {"2 scenes\n", "mean IoU       55.00 %", "patches right  71.43 %", "loss           0.5000", "60.00"})
    BOOST_TEST(report.find(piece) != std::string::npos, report);
  // A class that occurs and is never predicted counts as 0: the mean is that of 3 / 6, 2 / 4 and 0 / 1.
  evaluation.counts = {3, 1, 0, 1, 2, 0, 1, 0, 0};
  task->conclude(evaluation);
  BOOST_TEST(std::abs(evaluation.score.accuracy() - 1.0 / 3) < 1e-15);
}

// The head is applied to every patch, with or without a class token.
BOOST_AUTO_TEST_CASE(the_head_reads_patches) {
  const Workshop workshop;
  for (const char* pool : {"cls", "mean"}) {
    Experiment x = of_patches(workshop);
    x.model.pool = pool;
    const std::unique_ptr<Model> model = make_model(x);
    BOOST_TEST((model->outputs() == Shape{4, 10}));
    Parameters<double> parameters(model->parameters());
    parameters.initialise(2);
    const std::unique_ptr<Task<double>> task = make_task<double>(x, *model);
    const std::unique_ptr<TaskBatch<double>> batch = task->random_batch(3);
    BOOST_TEST(batch->terms() == 12);
    Tape<double> tape({.parameters = &parameters});
    const Var<double> logits = batch->logits(*model, tape, {0, 3});
    BOOST_TEST((logits.shape() == Shape{3, 4, 10}));
    if (x.model.pool == "cls") continue;
    // The head after the norm is linear, so the mean of the patches' logits equals the pooled model's logits.
    x.model.output = "class";
    const std::unique_ptr<Model> pooled = make_model(x);
    Parameters<double> same(pooled->parameters());
    same.initialise(2);
    Tape<double> other({.parameters = &same});
    const Var<double> answer = batch->logits(*pooled, other, {0, 3});
    for (Index i = 0; i < answer.size(); ++i) {
      double mean = 0;
      for (Index p = 0; p < 4; ++p) mean += logits.data()[(i / 10 * 4 + p) * 10 + i % 10] / 4;
      BOOST_TEST(std::abs(answer.data()[i] - mean) < 1e-13);
    }
  }
}

BOOST_AUTO_TEST_CASE(what_does_not_fit) {
  const Workshop workshop;
  Experiment x = of_patches(workshop);
  const auto opened = [&] {
    return error_of([&] {
      validate(x);
      const std::unique_ptr<Model> model = make_model(x);
      make_task<float>(x, *model)->open(Part::test, false);
    });
  };
  BOOST_TEST(opened() == "[model] output = \"tokens\" requires a class for each patch; data.name=mnist has none");
  x.data.name = "scenes";
  BOOST_TEST(opened() == "scenes are [1, 56, 56] (channels, height, width); the model expects [1, 8, 8]");
  x.model.image = 56;
  BOOST_TEST(opened() == "scenes: the images of mnist are 1x8x8; expected 1x28x28");
  x.train.label_smoothing = 0.1;
  BOOST_TEST(opened().starts_with("[train] label_smoothing = 0.1 requires one label per image"));
  x.train.label_smoothing = 0;
  x.model.output = "class";
  BOOST_TEST(opened().find("set model.output=\"tokens\"") != std::string::npos);
}

BOOST_AUTO_TEST_SUITE_END()
