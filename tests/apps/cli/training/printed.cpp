// Numbers that heed train, heed lr, heed listops and heed pairs print, from hand counts and the files that they write.
#include "heed/data/sequences/listops.h"
#include "heed/data/sequences/pairs.h"
#include "heed/train/rate_range.h"
#include "heed/train/runs/history.h"
#include "support/cli.h"
#include "support/lines.h"

#include "heed/io/json.h"
#include "heed/io/safetensors.h"

#include <cmath>
#include <map>
#include <regex>

using namespace heed;
using namespace heed::test;

namespace {

/// An experiment file whose model has 4490 parameters: embedding 272, class token 16, positions 80, two blocks of 1960
/// (norms 32 each, qkv 816, projection 272, MLP 408 and 400), final norm 32, head 170.
struct Printing : Workshop {
  std::string file = write_experiment(*this, experiment()), directory = *this / "run";

  std::string train(std::vector<std::string> more) const {
    more.insert(more.begin(), {"train", file, "--run", directory});
    return output_of(more);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_printed, Printing)

BOOST_AUTO_TEST_CASE(a_run_begins_and_ends_with_its_numbers) {
  const std::string printed = train({"--set", "train.epochs=1", "--threads", "1"}), line = in_one_line(printed);
  check_contains(printed, {"4,490 parameters; 112 images to train on, 20 to validate, 30 to test\n",
                           "\nrun directory " + directory + "\n",
                           "\nweights, metrics and configuration are in " + directory + "\nnext:\n"});
  for (const char* const absent : {"resumed", "instead of", "classes  ", "\nfrom ", "processes"})
    BOOST_TEST(printed.find(absent) == std::string::npos, absent);
  for (const char* const command : {"eval {}\n", "predict {} IMAGE...\n", "maps {} IMAGE\n", "report {}\n"})
    check_contains(printed, {" " + fmt::format(fmt::runtime(command), directory)});
  BOOST_TEST(printed.find("generate") == std::string::npos);
  BOOST_TEST(printed.find("--knn") == std::string::npos);
  // Multiply-adds of an image: embedding 1024, two blocks of 5 (768 + 256 + 768) + 800 each, head 160: 20704 forward.
  // The backward pass has twice as many, less 1024 for the gradient of the pixels: 61088 in all. At 3.7 + 0.9 pJ each
  // they take 281.0 nJ.
  check_contains(line,
                 {" 122.2 kFLOP per training image; ", " 281.0 nJ per training image by the table (float32, 45 nm); "});
}

// The run's speed is a mean over its epochs; operations per second are the operations of an image times the speed.
// Rates have three digits or no decimals, numbers of operations have four digits, and the percentage has no decimals.
BOOST_AUTO_TEST_CASE(the_speed_is_that_of_the_epochs) {
  const std::string line = in_one_line(train({"--set", "train.epochs=3"}));
  static const std::regex rate(" ([0-9.]+) images/s ");
  std::vector<double> rates;
  for (std::sregex_iterator one(line.begin(), line.end(), rate), end; one != end; ++one)
    rates.push_back(std::stod((*one)[1]));
  BOOST_REQUIRE(rates.size() == 3U);
  static const std::regex summary(
      "([0-9.]+) kFLOP per training image; ([0-9.]+) ([kMG])FLOP/s, ([0-9]+) % of the ([0-9.]+) ([MGT])FLOP/s of");
  std::smatch found;
  BOOST_TEST_REQUIRE(std::regex_search(line, found, summary), line);
  const std::map<std::string, double> prefixes{{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}};
  const double operations = 1e3 * std::stod(found[1]), speed = prefixes.at(found[3]) * std::stod(found[2]),
               peak = prefixes.at(found[6]) * std::stod(found[5]);
  const auto [slowest, fastest] = std::ranges::minmax(rates);
  BOOST_TEST(speed / operations >= (slowest - 0.5) * (1 - 2e-3));
  BOOST_TEST(speed / operations <= (fastest + 0.5) * (1 + 2e-3));
  BOOST_TEST(std::abs(std::stod(found[4]) - 100 * speed / peak) <= 0.5 + 2e-3 * 100 * speed / peak);
}

// Keys of the command line override those of a preset and of a weights file, which override the experiment's.
BOOST_AUTO_TEST_CASE(set_wins_over_preset_and_automatic_model) {
  const auto config = [&](const std::string& run) { return read_file(*this / (run + "/config.toml")); };
  const auto started = [&](const std::string& run, std::vector<std::string> more) {
    more.insert(more.begin(), {"train", file, "--run", *this / run, "--set", "train.max_steps=1"});
    const Finished finished = heed_with(more);
    BOOST_TEST(finished.status == 0, finished.err);
  };
  started("preset", {"--preset", "inception", "--set", "data.mean=[0.5]", "--set", "data.std=[0.25]"});
  check_contains(config("preset"),
                 {"mean = [0.5]", "std = [0.25]", "interpolation = \"bicubic\"", "resize = \"crop\""});
  started("auto", {"--init", *this / "preset/last.safetensors", "--model", "auto", "--set", "model.heads=2"});
  check_contains(config("auto"), {"init_positions = \"plain\"", "heads = 2"});
  started("none", {"--init", *this / "preset/last.safetensors", "--model", "auto", "--set", "model.heads=2", "--set",
                   "train.init_positions=none"});
  BOOST_TEST(config("none").find("init_positions = \"plain\"") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_stopped_run_says_where_it_was_and_goes_on) {
  check_contains(train({"--set", "train.max_steps=10"}),
                 {"stopped after 10 steps (train.max_steps); to continue:\n",
                  " train --run " + directory + " --resume --set train.max_steps=0\n"});
  check_contains(output_of({"train", "--run", directory, "--resume", "--threads", "1", "--set", "train.max_steps=12"}),
                 {"\nresumed after 10 steps\n", "stopped after 12 steps",
                  " train --run " + directory + " --resume --threads 1 --set train.max_steps=0\n"});
  const std::string printed =
      output_of({"train", "--run", directory, "--resume", "--set", "train.epochs=4", "--set", "train.max_steps=0"});
  check_contains(printed,
                 {"resumed after 12 steps\n4 epochs instead of 3: the learning rate now follows the schedule of "
                  "4 epochs\n",
                  "epoch 2/4  ", "epoch 3/4  ", "epoch 4/4  "});
  BOOST_TEST(printed.find("epoch 1/4") == std::string::npos);
  // A constant rate follows no schedule.
  directory = *this / "constant";
  train({"--set", "train.max_steps=1", "--set", "optim.schedule=constant"});
  check_contains(
      output_of({"train", "--run", directory, "--resume", "--set", "train.epochs=4", "--set", "train.max_steps=2"}),
      {"\n4 epochs instead of 3\n"});
}

// An epoch has seven steps. With rsqrt, the warm-up has an effect on all rates, so there is no warning.
BOOST_AUTO_TEST_CASE(a_warm_up_of_all_steps_leaves_the_schedule_without_effect) {
  const auto warned = [&](const std::string& steps, const std::string& schedule, const std::string& least) {
    const Finished run = heed_with({"train", file, "--run", directory + steps, "--set", "train.epochs=1", "--set",
                                    "optim.warmup_steps=" + steps, "--set", "optim.schedule=" + schedule, "--set",
                                    "optim.min_lr=" + least});
    BOOST_TEST(run.status == 0);
    return run.err;
  };
  const std::string need = " has no effect; it needs optim.warmup_steps below 7, the number of training steps\n";
  BOOST_TEST(warned("6", "linear", "1e-4") == "");
  BOOST_TEST(warned("7", "cosine", "1e-4") == "heed: warning: optim.min_lr = 0.0001" + need);
  BOOST_TEST(warned("8", "linear", "1e-4") ==
             "heed: warning: optim.schedule = \"linear\"" + need + "heed: warning: optim.min_lr = 0.0001" + need);
  BOOST_TEST(warned("9", "rsqrt", "0") == "");
}

// With a learning rate of 0, the first epoch remains the best.
BOOST_AUTO_TEST_CASE(patience_ends_a_run) {
  for (const Index patience : {1, 2}) {
    directory = *this / fmt::format("run{}", patience);
    const std::string printed =
        train({"--set", "optim.lr=0", "--set", "train.epochs=9", "--set", fmt::format("train.patience={}", patience)});
    check_contains(
        printed, {fmt::format("stopped after epoch {} by train.patience: validation did not improve\n", patience + 1)});
    BOOST_TEST(printed.find(fmt::format("epoch {}/9", patience + 2)) == std::string::npos);
    BOOST_TEST(read_history(RunPaths(directory)).epochs.size() == static_cast<std::size_t>(patience + 1));
  }
}

// The second block has 12 tensors with 1960 elements: unused by a model of one block, new in a model of two.
BOOST_AUTO_TEST_CASE(tensors_of_given_weights_are_counted) {
  const std::string two = *this / "two", one = *this / "one";
  run(experiment(), two);
  const Index tensors = static_cast<Index>(SafetensorsFile(two + "/best.safetensors").names().size());
  directory = one;
  check_contains(
      in_one_line(
          train({"--init", two, "--set", "model.depth=1", "--set", "train.init=matching", "--set", "train.epochs=1"})),
      {fmt::format("from {}/best.safetensors: loaded {} tensors (2,530 values), 12 unused in the file: ", two,
                   tensors - 12)});
  directory = *this / "again";
  const std::string grown =
      in_one_line(train({"--init", one, "--set", "train.init=matching", "--set", "train.epochs=1"}));
  check_contains(grown, {fmt::format("loaded {} tensors (2,530 values), 12 new ('blocks.1.", tensors - 12)});
  BOOST_TEST(grown.find("unused") == std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_check_shows_the_model_and_a_blind_guess) {
  check_contains(in_one_line(output_of({"train", file, "--check"})),
                 {"softmax; 2 blocks, width 16, 10 classes; 4,490 parameters",
                  fmt::format("where a blind guess has {:.4f}; 16 images in", std::log(10.0))});
  const auto limited = [&](const std::string& steps) {
    return in_one_line(output_of({"train", file, "--check", "--set", "train.max_steps=" + steps}));
  };
  check_contains(limited("20"), {"3 epochs of 7 steps, and stop after 20 (train.max_steps)"});
  BOOST_TEST(limited("21").find("stop after") == std::string::npos);
  check_contains(in_one_line(output_of({"train", file, "--check", "--set", "attention.mechanism=['sima', 'softmax']",
                                        "--set", "train.batch=10", "--set", "train.epochs=7"})),
                 {"sima, softmax; 2 blocks", "; 10 images in", "training would take 7 epochs of 11 steps"});
}

// heed lr prints the picture, the suggestion and, if there are more than 40 steps, every other step. Losses have four
// decimals.
BOOST_AUTO_TEST_CASE(a_rate_test_is_printed) {
  const RateRange range{1e-5, 1e-1, 59};
  const RateTest test = test_rates(load_experiment(file), range);
  BOOST_REQUIRE(!test.diverged);
  const std::string picture = *this / "lr.svg";
  std::vector<std::string> words{"lr", file, "--from", "1e-5", "--to", "1e-1", "--steps", "59", "-o", picture};
  const std::string text = output_of(words);
  const std::vector<std::string> rows = lines_of(text);
  BOOST_REQUIRE(rows.size() > 31U);
  BOOST_TEST(in_one_line(rows[0]) == "step learning rate loss smoothed");
  for (std::size_t i = 1; i <= 29; ++i) {
    const RatePoint& point = test.points[2 * i - 1];
    BOOST_TEST(in_one_line(rows[i]) ==
               fmt::format("{} {:.2e} {:.4f} {:.4f}", 2 * i, point.lr, point.loss, point.smoothed));
  }
  BOOST_TEST(rows[30].empty());
  BOOST_TEST(rows[31] == "did not diverge in 59 steps; try a larger --to");
  const std::optional<RateAdvice> found = advice(test.points);
  BOOST_REQUIRE(found.has_value());
  const std::string rate = fmt::format("{:.1e}", std::min(found->steepest, found->least / 10));
  check_contains(text,
                 {fmt::format("the smoothed loss falls fastest at {:.2e} and is lowest at {:.2e}\nsuggestion: --set "
                              "optim.lr={}, the smaller of the first rate and a tenth of the second\n",
                              found->steepest, found->least, rate)});
  check_contains(read_file(picture),
                 {"suggested: " + rate, "greater values at", fmt::format("{:.3g}", 1.25 * test.points[0].loss)});
  words.emplace_back("--csv");
  const std::vector<std::string> csv = lines_of(output_of(words));
  BOOST_REQUIRE(csv.size() == 60U);
  for (std::size_t i = 0; i < 59; ++i)
    BOOST_TEST(csv[i + 1] ==
               fmt::format("{},{},{},{}", i + 1, test.points[i].lr, test.points[i].loss, test.points[i].smoothed));
}

// All options of the generators have different values, so an exchange of two options would be detected.
BOOST_AUTO_TEST_CASE(generated_examples_are_those_of_the_options) {
  const ListOpsSetting lists{.train = 40, .valid = 7, .test = 9, .depth = 4, .args = 3, .min = 5, .max = 33, .seed = 8};
  write_listops(lists, *this / "lists");
  write_pairs({.train = 14, .valid = 6, .test = 8, .seed = 5}, *this / "pairs");
  output_of({"listops", "--out", *this / "lists2", "--train", "40", "--valid", "7", "--test", "9", "--depth", "4",
             "--args", "3", "--min", "5", "--max", "33", "--seed", "8"});
  output_of({"pairs", "--out", *this / "pairs2", "--train", "14", "--valid", "6", "--test", "8", "--seed", "5"});
  for (const std::string kind : {"lists", "pairs"})
    for (const auto& entry : std::filesystem::directory_iterator(*this / kind))
      BOOST_TEST((read_file(entry.path()) == read_file(*this / (kind + "2/") + entry.path().filename().string())));
}

BOOST_AUTO_TEST_CASE(generated_examples_are_counted) {
  const std::string lists = *this / "lists", pairs = *this / "pairs";
  BOOST_TEST(output_of({"listops", "--out", lists, "--train", "1200", "--valid", "3", "--test", "5", "--min", "3",
                        "--max", "20", "--depth", "3", "--args", "3"}) ==
             lists + ": 1,200 expressions to train on, 3 to validate, 5 to test\n");
  BOOST_TEST(output_of({"pairs", "--out", pairs, "--train", "4", "--valid", "6", "--test", "8"}) ==
             pairs + ": 4 pairs to train on, 6 to validate, 8 to test\n");
  // Either all files of a directory have a heading line or none has. Each part has its own number of examples.
  for (const auto& [directory, counts] : {std::pair(lists, std::vector<std::size_t>{1200, 3, 5}), {pairs, {4, 6, 8}}}) {
    std::vector<std::size_t> lines;
    for (const auto& entry : std::filesystem::directory_iterator(directory))
      lines.push_back(lines_of(read_file(entry.path())).size());
    std::ranges::sort(lines);
    std::vector<std::size_t> expected = counts;
    std::ranges::sort(expected);
    const std::size_t heading = lines.at(0) - expected[0];
    BOOST_TEST(heading <= 1U);
    for (std::size_t& count : expected) count += heading;
    BOOST_TEST(lines == expected, boost::test_tools::per_element());
  }
}

BOOST_AUTO_TEST_SUITE_END()
