// heed train --check: detects errors that would stop a run at its start, and writes nothing.
#include "support/cli.h"

#include <fmt/format.h>

#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// An experiment file beside its data.
struct Checked : Workshop {
  std::string file = write_experiment(*this, experiment());

  std::vector<std::string> arguments(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> all{"train", file, "--check"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }

  /// Returns every file with its content.
  std::set<std::string> files() const {
    std::set<std::string> found;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(*this / "."))
      found.insert(entry.path().string() + (entry.is_regular_file() ? read_file(entry.path()) : ""));
    return found;
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_train_check, Checked)

BOOST_AUTO_TEST_CASE(what_is_found_is_said_and_nothing_is_written) {
  const std::set<std::string> before = files();
  const std::vector<std::string> found{"softmax; 2 blocks, width 16, 10 classes; ",
                                       " parameters\n",
                                       "112 images to train on, 20 to validate, 30 to test",
                                       "16 images in",
                                       " GB\n",
                                       "3 epochs of 7 steps"};
  check_contains(output_of(arguments()), found);
  check_contains(output_of(arguments({"--run", *this / "run", "--set", "train.log_steps=true"})), found);
  BOOST_TEST((files() == before));
}

BOOST_AUTO_TEST_CASE(the_step_is_the_first_of_the_run) {
  for (const std::string dtype : {"f32", "f64"}) {
    const std::string run = *this / dtype;
    output_of({"train", file, "--run", run, "--set", "train.max_steps=1", "--set", "train.log_steps=true", "--set",
               "train.dtype=" + dtype});
    const std::string row = metrics_of(run).at(1), start = "step,1,1,";
    BOOST_TEST(row.starts_with(start));
    check_contains(output_of(arguments({"--set", "train.dtype=" + dtype})),
                   {fmt::format("first step  loss {:.4f}, ", std::stod(row.substr(start.size())))});
  }
}

BOOST_AUTO_TEST_CASE(what_would_end_the_run_ends_the_check) {
  check_refusal(arguments({"--set", "model.patch=3"}), {"patch = 3 does not divide image = 8"});
  check_refusal(arguments({"--set", "train.batch=113"}), {"do not fill one batch"});
  check_refusal(arguments({"--init", *this / "none"}), {*this / "none"});
  for (const std::string other : {"--resume", "--profile"}) check_refusal(arguments({other}), {"--check", other});
  std::filesystem::create_directories(*this / "run");
  write_file(*this / "run/last.safetensors", "");
  check_refusal(arguments({"--run", *this / "run"}), {"already contains a run"});
  for (const std::string set : {"train.on_nonfinite=stop", "train.on_nonfinite=skip"}) {
    const Finished diverged = heed_with(arguments({"--set", "optim.lr=1e38", "--set", "optim.weight_decay=1e38",
                                                   "--set", "optim.warmup_epochs=0", "--set", set}));
    BOOST_TEST(diverged.status == 3);
    BOOST_TEST(diverged.out == "");
    check_contains(diverged.err, {"training diverged"});
  }
  const std::string labels = data() + "/t10k-labels-idx1-ubyte";
  write_file(labels, read_file(labels).substr(0, 20));
  check_refusal(arguments(), {labels});
  std::filesystem::remove(labels);
  check_refusal(arguments(), {data(), "t10k-labels-idx1-ubyte is missing"});
}

BOOST_AUTO_TEST_SUITE_END()
