// heed verdict on the directory of a sweep: constructed runs, and further seeds that it trains.
#include "heed/io/json.h"
#include "heed/train/runs/data_record.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

struct JudgingRuns : Workshop {
  std::string cells = *this / "cells";

  /// Creates a cell of a sweep: finished with a test accuracy, or diverged, or neither.
  void make(const std::string& arm, Index seed, const char* accuracy, bool diverged = false) const {
    Experiment x = experiment();
    x.train.seed = seed;
    x.optim.lr = arm == "a" ? 1e-3 : arm == "c" ? 5e-3 : 3e-3;
    const RunPaths paths(fmt::format("{}/{}/seed-{}", cells, arm, seed));
    std::filesystem::create_directories(paths.directory);
    write_file(paths.config(), config_toml(x));
    std::string rows = "kind,epoch,step,loss,accuracy,lr,images_per_s\ntrain,1,7,2.5,0.25,0.001,112\n";
    if (*accuracy) rows += fmt::format("test,1,7,{},{},,\n", 1 - std::stod(accuracy), accuracy);
    write_file(paths.metrics(), rows);
    write_file(paths.directory + "/cell.json", fmt::format(R"({{"arm": "{}", "hash": "", "version": ""{}}})", arm,
                                                           diverged ? R"(, "diverged": "the loss is inf")" : ""));
  }

  Finished verdict(std::vector<std::string> more) const {
    more.insert(more.begin(), {"verdict", cells});
    return heed_with(more);
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_verdict_runs, JudgingRuns)

// The difference a - b is 0.05 ± 0.0227, as is a - c in verdict.cpp.
BOOST_AUTO_TEST_CASE(arms_are_the_sweeps_and_the_status_is_the_verdict) {
  for (const Index seed : {1, 2, 3}) {
    make("a", seed, std::array{"0.90", "0.91", "0.92"}[static_cast<std::size_t>(seed - 1)]);
    make("b", seed, std::array{"0.85", "0.86", "0.87"}[static_cast<std::size_t>(seed - 1)]);
  }
  const auto check = [&](const std::vector<std::string>& more, int status, const std::string& last) {
    const Finished run = verdict(more);
    BOOST_TEST(run.status == status, run.err);
    BOOST_TEST(lines_of(run.out).back() == last);
  };
  check({"--better", "a", "b"}, 0, "holds");
  check({"--better", "b", "a"}, 1, "does not hold");
  check({"--better", "a", "b", "--by", "0.04"}, 4, "undecided");
  check({"--par", "b", "a", "--within", "0.08"}, 0, "holds");
  check({"--better", "a", "b", "--figure", "test_loss"}, 0, "holds");  // losses are 1 - accuracy; less is better
  check({"--better", "a", "b", "--test-images", "16"}, 4, "undecided");
  const Json json = Json::parse(verdict({"--better", "a", "b", "--by", "0.04", "--seeds", "20", "--json"}).out);
  BOOST_TEST(json.at("further_seeds").dump() == "[4,5,6,7,8,9]");
  check_refusal({"verdict", cells, "--better", "a", "c"}, {"cells: unknown arm 'c'"});
  check_refusal({"verdict", cells, "--better", "a", "b", "--less"}, {"--less is only for tables", "--figure"});
  check_refusal({"verdict", cells, "--better", "a", "b", "--claim", "x"}, {"--claim is only for tables"});
  check_refusal({"verdict", cells, "--better", "a", "b", "--jobs", "2"}, {"--jobs requires --run"});
  check_refusal({"verdict", cells, "--better", "a", "b", "--threads", "2"}, {"--threads requires --run"});
  check_refusal({"verdict", cells, "--better", "a", "b", "--figure", "test_loss", "--test-images", "16"},
                {"--test-images is only for accuracies"});
  std::filesystem::remove(cells + "/a/seed-1/cell.json");
  check_refusal({"verdict", cells, "--better", "seed-1", "b", "--by", "0.04", "--seeds", "20", "--run"},
                {"a/seed-1: not a run of heed sweep"});
  check_refusal({"verdict", cells + "/a/seed-1", cells + "/b", "--better", "seed-1", "b"}, {"'seed-1' has 1 seed;"});
}

BOOST_AUTO_TEST_CASE(diverged_runs_count_as_chance_and_unfinished_ones_do_not) {
  for (const Index seed : {1, 2, 3, 4}) {
    make("a", seed, "0.9");
    make("b", seed, seed == 3 ? "" : "0.5", seed == 3);
  }
  make("a", 5, "0.9");
  make("b", 5, "");
  make("b", 6, "", true);
  const Finished run = verdict({"--better", "a", "b"});
  BOOST_TEST(run.status == 0, run.err);
  check_contains(
      run.out, {"b, seed 3: diverged, counted as 0.1", "seed-5: not finished, so it is ignored",
                "a, seed 5: ignored; b has no run with this seed", "b, seed 6: ignored; a has no run with this seed"});
  BOOST_TEST(run.out.find("seed 6: diverged") == std::string::npos, run.out);
  const std::string note = "a, seed 5: ignored; b has no run with this seed", text = run.out;
  BOOST_TEST(text.find(note) == text.rfind(note), text);
  const Json notes = Json::parse(verdict({"--better", "a", "b", "--json"}).out).at("notes");
  BOOST_REQUIRE(notes.items().size() == 4u);
  BOOST_TEST(notes.items()[0].text() == note);
  BOOST_TEST(notes.items()[3].text() == "b, seed 3: diverged, counted as 0.1");
  const auto check_mean = [&](const char* figure, double mean) {
    const Json json = Json::parse(verdict({"--better", "a", "b", "--figure", figure, "--json"}).out);
    BOOST_TEST(std::abs(json.at("arms").items()[1].at("mean").number() - mean) < 1e-12);
  };
  check_mean("test_accuracy", (3 * 0.5 + 0.1) / 4);
  check_mean("test_loss", (3 * 0.5 + std::log(10)) / 4);
}

// An error about missing values names the first run that does not count, and the number of others.
BOOST_AUTO_TEST_CASE(arms_without_runs_that_count) {
  for (const Index seed : {1, 2, 3}) {
    make("a", seed, "0.9");
    make("b", seed, "");
    if (seed < 3) make("c", seed, "0.5");
  }
  const std::string file = cells + "/b/seed-1: not finished, so it is ignored; 2 more)";
  check_refusal({"verdict", cells, "--better", "a", "b"}, {"cells: 'b' has no run that counts (" + file});
  check_refusal({"verdict", cells, "--below", "b", "1"}, {"cells: 'b' has no run that counts (" + file});
  check_refusal({"verdict", cells, "--better", "c", "a"}, {"cells: 'c' has 2 seeds; ", "expected 3 or more\n"});
  check_refusal({"verdict", cells, "--better", "a", "c"},
                {"cells: 'a' has 2 seeds; ", "expected 3 or more (a, seed 3: ignored; c has no run with this seed)"});
}

// Notes about an arm that is in two parts of the claim are printed once.
BOOST_AUTO_TEST_CASE(notes_of_an_arm_in_two_parts) {
  for (const Index seed : {1, 2, 3, 4}) make("a", seed, "0.9");
  for (const Index seed : {1, 2, 3}) make("b", seed, "0.5"), make("c", seed, "0.4");
  const std::string note = "a, seed 4: ignored; b has no run with this seed",
                    text = verdict({"--better", "a", "b", "--better", "a", "c"}).out;
  check_contains(text, {note});
  BOOST_TEST(text.find(note) == text.rfind(note), text);
}

// A note names only arms without the seed. Arm a has a run with seed 5, although it is ignored, so the note about seed
// 5 of arm c names only b.
BOOST_AUTO_TEST_CASE(notes_name_an_arm_without_the_seed) {
  for (const Index seed : {1, 2, 3, 4, 5}) make("a", seed, "0.9");
  for (const Index seed : {1, 2, 3, 4, 6}) make("b", seed, "0.5");
  for (const Index seed : {1, 2, 3, 5}) make("c", seed, "0.4");
  const Finished run = verdict({"--better", "a", "b", "--better", "b", "c"});
  check_contains(run.out,
                 {"a, seed 4: ignored; c has no run with this seed", "a, seed 5: ignored; b has no run with this seed",
                  "b, seed 4: ignored; c has no run with this seed", "b, seed 6: ignored; a has no run with this seed",
                  "c, seed 5: ignored; b has no run with this seed"});
}

// Seeds trained on other data form a second arm of the same name; the claim then names an arm by one of its runs.
BOOST_AUTO_TEST_CASE(seeds_on_other_data_do_not_count) {
  const std::string a = cells + "/a/seed-", b = cells + "/b/seed-";
  for (const Index seed : {1, 2, 3, 4}) {
    make("a", seed, std::array{"0.90", "0.91", "0.92", "0.1"}[static_cast<std::size_t>(seed - 1)]);
    make("b", seed, std::array{"0.85", "0.86", "0.87", "0.8"}[static_cast<std::size_t>(seed - 1)]);
    for (const std::string& arm : {a, b})
      write_file(RunPaths(fmt::format("{}{}", arm, seed)).data(),
                 data_json({"mnist", "mnist", "/data", {.files = {{"x", seed == 4 ? "2" : "1"}}}, {}, {}}));
  }
  check_refusal(
      {"verdict", cells, "--better", "a", "b"},
      {fmt::format("{}: 'a' is the name of 2 arms with different settings or data: {}1, {}4; name one", cells, a, a)});
  check_refusal({"verdict", cells, "--above", "b", "0.5"}, {"'b' is the name of 2 arms"});
  const Finished named = verdict({"--better", a + "1", b + "1"});
  BOOST_TEST(named.status == 0, named.err);
  check_contains(named.out, {"seed-1      3  0.9100"});
}

// On scenes, a diverged run counts as one of random predictions, whose overlap is taken as zero.
BOOST_AUTO_TEST_CASE(diverged_runs_on_scenes_count_as_no_overlap) {
  for (const std::string arm : {"a", "b"})
    for (const Index seed : {1, 2, 3}) {
      const bool diverged = arm == "b" && seed == 3;
      make(arm, seed, diverged ? "" : "0.5", diverged);
      Experiment x = experiment();
      x.train.seed = seed, x.optim.lr = arm == "a" ? 1e-3 : 3e-3;
      x.model.output = "tokens", x.model.image = 56, x.model.patch = 14, x.model.classes = 11, x.data.name = "scenes";
      write_file(RunPaths(fmt::format("{}/{}/seed-{}", cells, arm, seed)).config(), config_toml(x));
    }
  const Json json = Json::parse(verdict({"--better", "a", "b", "--json"}).out);
  BOOST_TEST(std::abs(json.at("arms").items()[1].at("mean").number() - 1.0 / 3) < 1e-12);
}

// The claim's bound is inside the interval by a hundredth of its half-width: one more seed per arm would decide.
BOOST_AUTO_TEST_CASE(further_seeds_are_cells_of_the_sweep) {
  const std::string base = write_experiment(*this, experiment()), file = *this / "tiny.toml";
  write_file(file, fmt::format("base = \"{}\"\nseeds = 3\n[train]\nepochs = 1\n[arms.a]\n[arms.b]\noptim.lr = 3e-3\n"
                               "[arms.c]\noptim.lr = 2e-3\n",
                               base));
  BOOST_TEST(heed_with({"sweep", file, "--out", cells, "--threads", "2"}).status == 0);
  const Json before =
      Json::parse(verdict({"--better", "a", "b", "--figure", "test_loss", "--json"}).out).at("parts").items()[0];
  const double bound = before.at("value").number() + 0.99 * before.at("half_width").number();
  const std::vector<std::string> claim =
      bound > 0 ? std::vector<std::string>{"--better", "a", "b", "--by", fmt::format("{}", bound)}
                : std::vector<std::string>{"--par", "a", "b", "--within", fmt::format("{}", -bound)};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), claim.begin(), claim.end());
    more.insert(more.end(), {"--figure", "test_loss"});
    return verdict(more);
  };
  BOOST_TEST(with({"--seeds", "4"}).status == 4);
  BOOST_TEST(!std::filesystem::exists(cells + "/a/seed-4"));
  write_patterns(data(), 133, 30, 8);
  const Finished refused = with({"--seeds", "4", "--run"});
  BOOST_TEST(refused.status == 2);
  BOOST_TEST(is_line_with(refused.err, cells + "/a/seed-1: was started with different data; the data now at " + data() +
                                           " differ: 2 edited (train-images-idx3-ubyte, train-labels-idx1-ubyte)"),
             refused.err);
  BOOST_TEST(!std::filesystem::exists(cells + "/a/seed-4"));
  write_patterns(data(), 132, 30, 8);
  const EnvironmentVariable default_count("OMP_NUM_THREADS", "3");
  const Finished run = with({"--seeds", "4", "--run", "--json"});
  check_contains(run.err, {"[2/2] "});
  BOOST_TEST(Json::parse(run.out).at("arms").items()[1].at("seeds").integer() == 4);
#ifndef HEED_NO_THREADS
  BOOST_TEST(Json::parse(read_file(cells + "/a/seed-4/environment.json")).at("threads").integer() == 3);
#endif
  check_contains(output_of({"sweep", file, "--out", cells, "--seeds", "4", "--dry-run"}),
                 {"12 cells, 1 to train"});  // arm c is not in the claim
}

// Arm a is better in validation accuracy and test loss; validation figures are taken from the best epoch, the first.
BOOST_AUTO_TEST_CASE(every_figure_has_its_direction) {
  for (const Index seed : {1, 2, 3})
    for (const std::string arm : {"a", "b"}) {
      make(arm, seed, "0.5");
      const double x = 0.01 * static_cast<double>(seed), other = arm == "a" ? 0 : 0.25;
      write_file(fmt::format("{}/{}/seed-{}/metrics.csv", cells, arm, seed),
                 fmt::format("kind,epoch,step,loss,accuracy,lr,images_per_s\ntrain,1,7,9,0.1,0.001,112\n"
                             "valid,1,7,{},{},,\ntrain,2,14,8,0.2,0.001,112\nvalid,2,14,0.125,0.25,,\n"
                             "test,2,14,{},{},,\n",
                             2 + x - other, 0.75 + x - other, 1 + x + other, 0.5 + x + other));
    }
  for (const auto& [figure, mean, other, status] : {std::tuple("test_accuracy", 0.52, 0.77, 1),
                                                    {"test_loss", 1.02, 1.27, 0},
                                                    {"validation_accuracy", 0.77, 0.52, 0},
                                                    {"validation_loss", 2.02, 1.77, 1}}) {
    const Finished run = verdict({"--better", "a", "b", "--figure", figure, "--json"});
    BOOST_TEST(run.status == status, figure);
    const Json arms = Json::parse(run.out).at("arms");
    BOOST_TEST(std::abs(arms.items()[0].at("mean").number() - mean) < 1e-12, figure);
    BOOST_TEST(std::abs(arms.items()[1].at("mean").number() - other) < 1e-12, figure);
  }
}

// Compared arms share seeds 2, 3 and 4; an arm that is only compared with a bound keeps its own seeds.
BOOST_AUTO_TEST_CASE(seeds_of_all_compared_arms) {
  const auto arm = [&](const std::string& name, const std::vector<Index>& seeds, const std::string& value) {
    for (const Index seed : seeds) make(name, seed, value.c_str(), value.empty());
    for (const Index seed : seeds) {  // the configuration identifies the arm
      Experiment x = experiment();
      x.train.seed = seed, x.optim.lr = 1e-3 * (1 + name[0] - 'a');
      write_file(RunPaths(fmt::format("{}/{}/seed-{}", cells, name, seed)).config(), config_toml(x));
    }
  };
  arm("a", {1, 2, 3, 4, 5}, "0.9"), arm("b", {1, 2, 3, 4}, "0.8"), arm("c", {2, 3, 4, 5}, "0.2");
  arm("d", {1}, "0.5"), arm("d", {7}, "0.1"), arm("c", {4}, "");
  const std::vector<std::string> claim{"--better", "a", "b", "b", "c", "--below", "d"};
  const auto with = [&](const std::string& bound, bool json) {
    std::vector<std::string> words = claim;
    words.push_back(bound);
    if (json) words.emplace_back("--json");
    return verdict(words);
  };
  BOOST_TEST(with("0.5", false).status == 1);
  BOOST_TEST(lines_of(with("0.51", false).out).back() == "holds");
  const Json arms = Json::parse(with("0.51", true).out).at("arms");
  for (std::size_t i = 0; i < 3; ++i) {
    BOOST_TEST(arms.items()[i].at("seeds").integer() == 3);
    BOOST_TEST(arms.items()[i].at("diverged").dump() == (i == 2 ? "[4]" : "[]"));
  }
  check_contains(with("0.51", false).out,
                 {"a, seed 5: ignored; b has no run", "c, seed 5: ignored;", "c, seed 4: diverged, counted as 0.1\n"});
  BOOST_TEST(with("0.51", false).out.find("d, seed") == std::string::npos);
}

// Arm b belongs to another sweep. Both programs wait 3 s for the lock of the first sweep's directory, then fail.
BOOST_AUTO_TEST_CASE(a_sweep_in_use_is_refused) {
  const std::string other = *this / "other", file = *this / "tiny.toml";
  for (const Index seed : {1, 2, 3}) {
    make("a", seed, std::array{"0.90", "0.91", "0.92"}[static_cast<std::size_t>(seed - 1)]);
    make("b", seed, std::array{"0.85", "0.86", "0.87"}[static_cast<std::size_t>(seed - 1)]);
    for (const std::string arm : {"a", "b"}) {
      const std::string cell = fmt::format("{}/{}/seed-{}", cells, arm, seed);
      std::filesystem::copy_file(RunPaths(cell).config(), cell + "/cell.toml");
    }
  }
  std::filesystem::create_directory(other);
  std::filesystem::rename(cells + "/b", other + "/b");
  write_file(file, fmt::format("base = \"{}\"\nseeds = 1\n[arms.new]\n", write_experiment(*this, experiment())));
  const DirectoryLock lock(cells);
  Program judging({"verdict", cells, other, "--better", "a", "b", "--by", "0.04", "--seeds", "20", "--run"}),
      sweeping({"sweep", file, "--out", cells});
  for (Program* program : {&judging, &sweeping}) {
    const Finished run = program->wait();
    BOOST_TEST(run.status == 2);
    BOOST_TEST(run.out == "");
    BOOST_TEST(is_line_with(run.err, "/cells: another process is using this directory; wait until it ends"), run.err);
  }
  for (const std::string& directory : {cells + "/a/seed-4", other + "/b/seed-4", cells + "/new"})
    BOOST_TEST(!std::filesystem::exists(directory), directory);
}

BOOST_AUTO_TEST_SUITE_END()
