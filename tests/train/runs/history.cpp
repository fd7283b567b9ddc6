// A run's history and the figures that tables of runs show, value by value from tables written by hand.
#include "heed/train/runs/history.h"

#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <map>

using namespace heed;

namespace {

/// The tables of a run of three or four epochs of four steps. All losses, accuracies, rates and norms differ, except
/// the best validation accuracy, of epochs 2 and 3.
struct Past {
  TemporaryDirectory directory;
  RunPaths paths{directory / ""};

  explicit Past(bool fourth = true, bool tested = true) {
    std::string rows =
        "kind,epoch,step,loss,accuracy,lr,images_per_s\n"
        "step,1,3,2.6,0.2,0.03,90\nstep,1,4,2.5,,0.04,91\n"
        "train,1,4,2.4,0.25,0.041,80\nvalid,1,4,2.2,0.5,,\n"
        "train,2,8,1.4,0.45,0.02,20\nvalid,2,8,1.9,0.75,,\n"
        "step,3,9,,,0.015,\n"
        "train,3,12,1.1,0.65,0.01,40\nvalid,3,12,1.7,0.75,,\n";
    if (fourth) rows += "train,4,16,0.9,0.8,0,10\nvalid,4,16,1.3,0.625,,\n";
    if (tested) rows += fourth ? "test,4,16,1.6,0.7,,\n" : "test,3,12,1.6,0.7,,\n";
    write_file(paths.metrics(), rows);
    write_file(paths.gradients(),
               "kind,epoch,step,gradient_norm\nstep,1,3,7\nstep,1,4,8\ntrain,1,4,6\ntrain,2,8,5\nstep,3,9,\n"
               "train,3,12,4\n");
  }
};

using Value = std::optional<double>;

void check_value(const Value& found, const Value& expected, const std::string& what) {
  BOOST_TEST(found.has_value() == expected.has_value(), what);
  if (found && expected) BOOST_TEST(std::abs(*found - *expected) < 1e-15, what << " is " << *found);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_history)

BOOST_AUTO_TEST_CASE(a_history_has_every_value_of_the_tables) {
  const Past past;
  const RunHistory history = read_history(past.paths);
  const auto columns = [](const EpochRecord& e) {
    return std::vector<Value>{e.loss,
                              e.accuracy,
                              e.lr,
                              e.gradient_norm,
                              e.images_per_s,
                              e.validation_loss,
                              e.validation_accuracy,
                              static_cast<double>(e.epoch),
                              static_cast<double>(e.step)};
  };
  const std::vector<std::vector<Value>> epochs{{2.4, 0.25, 0.041, 6, 80, 2.2, 0.5, 1, 4},
                                               {1.4, 0.45, 0.02, 5, 20, 1.9, 0.75, 2, 8},
                                               {1.1, 0.65, 0.01, 4, 40, 1.7, 0.75, 3, 12},
                                               {0.9, 0.8, 0, {}, 10, 1.3, 0.625, 4, 16}};
  BOOST_REQUIRE(history.epochs.size() == 4u);
  for (std::size_t e = 0; e < 4; ++e)
    for (std::size_t i = 0; i < 9; ++i)
      check_value(columns(history.epochs[e])[i], epochs[e][i], fmt::format("epoch {}, value {}", e + 1, i));
  // The row of a step and that of an epoch with the same number of steps have separate norms.
  const std::vector<std::vector<Value>> steps{{3, 2.6, 0.03, 7}, {4, 2.5, 0.04, 8}, {9, {}, 0.015, {}}};
  BOOST_REQUIRE(history.steps.size() == 3u);
  for (std::size_t s = 0; s < 3; ++s) {
    const StepRecord& step = history.steps[s];
    const Value found[] = {static_cast<double>(step.step), step.loss, step.lr, step.gradient_norm};
    for (std::size_t i = 0; i < 4; ++i) check_value(found[i], steps[s][i], fmt::format("step row {}, value {}", s, i));
  }
  BOOST_TEST(history.finished);
  check_value(history.test_loss, 1.6, "test loss");
  check_value(history.test_accuracy, 0.7, "test accuracy");
  BOOST_TEST(!read_history(Past(true, false).paths).finished);
}

// Epochs of four steps of ten images take 0.5, 2, 1 and 4 s. The validation figures come from the first of two equally
// good epochs, the training loss from the last epoch.
BOOST_AUTO_TEST_CASE(figures_by_hand) {
  for (const bool fourth : {true, false}) {
    const Past past(fourth);
    write_file(past.paths.cost(), R"({"definition": {"params": 5}, "contractions": {"params": 77}})");
    const RunFigures figures = read_figures(past.paths, 10);
    const std::map<std::string, double> expected{{"test_accuracy", 0.7},
                                                 {"test_loss", 1.6},
                                                 {"validation_accuracy", 0.75},
                                                 {"validation_loss", 1.9},
                                                 {"train_loss", fourth ? 0.9 : 1.1},
                                                 {"epochs", fourth ? 4 : 3},
                                                 {"seconds_per_epoch", fourth ? 1.5 : 1},
                                                 {"parameters", 77}};
    for (const FigureName& name : figure_names) check_value(figures.*name.value, expected.at(name.key), name.key);
    BOOST_TEST(figure_names.size() == expected.size());
  }
}

// Changed data can make epochs longer. Epochs of 2 and 6 steps, with batches of ten images at 10 and 20 images per
// second, take 2 and 3 s, with a median of 2.5 s.
BOOST_AUTO_TEST_CASE(an_epoch_has_the_steps_since_the_one_before) {
  const Past past;
  write_file(past.paths.metrics(),
             "kind,epoch,step,loss,accuracy,lr,images_per_s\ntrain,1,2,2.4,,0.01,10\ntrain,2,8,1.4,,0.01,20\n"
             "test,2,8,1.6,0.7,,\n");
  check_value(read_figures(past.paths, 10).seconds_per_epoch, 2.5, "seconds per epoch");
}

BOOST_AUTO_TEST_CASE(what_is_unknown_has_no_figure) {
  const Past unfinished(true, false), finished;
  for (const FigureName& name : figure_names) check_value(read_figures(unfinished.paths, 10).*name.value, {}, name.key);
  BOOST_TEST(!read_figures(finished.paths, 10).parameters);
  write_file(finished.paths.metrics(),
             "kind,epoch,step,loss,accuracy,lr,images_per_s\ntrain,1,4,2.4,,0.01,\ntest,1,4,1.6,0.7,,\n");
  const RunFigures figures = read_figures(finished.paths, 10);
  BOOST_TEST((!figures.validation_accuracy && !figures.validation_loss && !figures.seconds_per_epoch));
  check_value(figures.epochs, 1, "epochs");
}

BOOST_AUTO_TEST_SUITE_END()
