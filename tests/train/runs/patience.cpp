// train.patience: training ends when validation stops improving, at the same epoch with and without interruptions.
#include "heed/train/runs/history.h"
#include "heed/train/runs/run.h"

#include "support/tasks.h"
#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns an experiment with a learning rate of zero: the first validation is the best.
Experiment stuck(const Workshop& workshop) {
  Experiment x = workshop.experiment();
  x.optim.lr = 0;
  x.train.epochs = 9;
  x.train.patience = 3;
  return x;
}

class Patience : public TrainObserver {
 public:
  void out_of_patience(Index epochs) override { ended = epochs; }
  Index ended = 0;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(train_patience)

BOOST_AUTO_TEST_CASE(training_ends_after_as_many_epochs_without_improvement) {
  const Workshop workshop;
  Experiment x = stuck(workshop);
  Patience observer;
  TrainOptions options;
  options.run = workshop / "run";
  BOOST_TEST((train(x, options, observer) == Outcome::finished));
  BOOST_TEST(observer.ended == 4);
  const RunHistory history = read_history(RunPaths(workshop / "run"));
  BOOST_TEST(history.epochs.size() == 4);
  BOOST_TEST(history.finished);
  // Patience that runs out in the last epoch has no effect.
  x.train.epochs = 4;
  Patience last;
  options.run = workshop / "last";
  BOOST_TEST((train(x, options, last) == Outcome::finished));
  BOOST_TEST(last.ended == 0);
  x.train.epochs = 9, x.train.patience = 0;
  Patience none;
  options.run = workshop / "whole";
  BOOST_TEST((train(x, options, none) == Outcome::finished));
  BOOST_TEST(none.ended == 0);
  BOOST_TEST(read_history(RunPaths(workshop / "whole")).epochs.size() == 9);
}

// Each improvement restarts the count of epochs; the learning rates are those of a run of all epochs.
BOOST_AUTO_TEST_CASE(improvement_begins_the_count_again_and_the_schedule_stays) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.optim.lr = 3e-3;
  x.train.epochs = 12;
  run(x, workshop / "whole");
  const std::vector<std::string> whole = metrics_of(workshop / "whole");
  const RunHistory history = read_history(RunPaths(workshop / "whole"));
  double best = -1;
  std::size_t expected = 12, since = 0;
  for (std::size_t i = 0; i < 12 && expected == 12; ++i) {
    const bool better = *history.epochs[i].validation_accuracy > best;
    best = std::max(best, *history.epochs[i].validation_accuracy);
    since = better ? 0 : since + 1;
    if (since == 2) expected = i + 1;
  }
  BOOST_REQUIRE(expected > 3);
  x.train.patience = 2;
  run(x, workshop / "patient");
  const std::vector<std::string> rows = metrics_of(workshop / "patient");
  BOOST_REQUIRE(rows.size() == 1 + 2 * expected + 1);
  for (std::size_t i = 0; i < 1 + 2 * expected; ++i) BOOST_TEST(rows[i] == whole[i]);
}

BOOST_AUTO_TEST_CASE(interruptions_leave_no_trace) {
  const Workshop workshop;
  const Experiment x = stuck(workshop);
  run(x, workshop / "whole");
  for (const Index steps : {10, 14, 21, 28}) {
    const std::string directory = workshop / std::to_string(steps);
    BOOST_TEST((run_until(steps, x, directory) == Outcome::interrupted));
    BOOST_TEST((run(x, directory, true) == Outcome::finished));
    check_same_run(workshop / "whole", directory);
  }
}

BOOST_AUTO_TEST_CASE(there_must_be_something_to_validate_on) {
  const Workshop workshop;
  Experiment x = stuck(workshop);
  x.data.validation = 0;
  BOOST_TEST(error_of([&] { run(x, workshop / "run"); }) ==
             "[train] patience = 3 needs validation examples; set [data] validation above 0");
  // A validation file suffices as validation examples.
  const TaskData data;
  x = data.experiment("documents");
  x.data.validation = 0, x.train.patience = 3;
  BOOST_TEST((run(x, workshop / "run") == Outcome::finished));
}

BOOST_AUTO_TEST_SUITE_END()
