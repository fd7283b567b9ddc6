// Data and directories removed during a run: nothing saved is lost.
#include "support/training.h"

using namespace heed;
using namespace heed::test;

namespace fs = std::filesystem;

namespace {

/// Returns the error of a run with a mishap after its third step; the run saves every other step.
std::string error_after_three_steps(const Experiment& x, const std::string& directory,
                                    const std::function<void()>& mishap) {
  TrainOptions options;
  options.run = directory;
  AfterStep observer([&](const StepReport& report) {
    if (report.step == 3) mishap();
  });
  return error_of([&] { train(x, options, observer); });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_vanishing)

// Images that fit into memory are read once: only a resumed run needs them again.
BOOST_AUTO_TEST_CASE(the_data) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.checkpoint_steps = 2;
  const std::string whole = workshop / "whole", directory = workshop / "run", elsewhere = workshop / "elsewhere";
  run(x, whole);

  BOOST_TEST(error_after_three_steps(x, directory, [&] { fs::rename(workshop.data(), elsewhere); }) == "no error");
  check_same_run(whole, directory);
  const std::string last = read_file(directory + "/last.safetensors");
  BOOST_TEST(error_of([&] { run(x, directory, true); }).starts_with(workshop.data() + ": "));
  BOOST_TEST((read_file(directory + "/last.safetensors") == last));
}

BOOST_AUTO_TEST_CASE(the_run_directory) {
  const Workshop workshop;
  Experiment x = workshop.experiment();
  x.train.checkpoint_steps = 2;
  const std::string whole = workshop / "whole", directory = workshop / "run", elsewhere = workshop / "elsewhere";
  run(x, whole);

  const std::string error = error_after_three_steps(x, directory, [&] { fs::rename(directory, elsewhere); });
  BOOST_TEST(error.starts_with(directory + "/"), error);
  BOOST_TEST(!fs::exists(directory));
  BOOST_TEST((run(x, elsewhere, true) == Outcome::finished));
  check_same_run(whole, elsewhere);
}

BOOST_AUTO_TEST_SUITE_END()
