// heed lr: the table, the suggestion and its picture.
#include "heed/train/rate_range.h"
#include "heed/train/runs/history.h"
#include "heed/train/runs/run.h"

#include "support/cli.h"
#include "support/command.h"
#include "support/training.h"

#include <cmath>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(cli_lr)

BOOST_AUTO_TEST_CASE(the_rate_grows_and_the_loss_is_smoothed) {
  const Workshop workshop;
  RateRange range{1e-5, 1e-1, 21};
  const RateTest test = test_rates(workshop.experiment(), range);
  BOOST_REQUIRE(test.points.size() > 10);
  double mean = 0;
  for (std::size_t i = 0; i < test.points.size(); ++i) {
    BOOST_TEST(std::abs(std::log10(test.points[i].lr) - (-5 + 0.2 * static_cast<double>(i))) < 1e-12);
    mean = 0.95 * mean + 0.05 * test.points[i].loss;
    BOOST_TEST(std::abs(test.points[i].smoothed - mean / (1 - std::pow(0.95, static_cast<double>(i + 1)))) < 1e-12);
  }
  // The first step's loss equals that of a training run.
  Experiment x = workshop.experiment();
  x.train.max_steps = 1;
  x.train.log_steps = true;
  run(x, workshop / "run");
  const std::string row = metrics_of(workshop / "run").at(1);
  BOOST_TEST(std::abs(std::stod(row.substr(std::string("step,1,1,").size())) - test.points[0].loss) < 1e-9);
}

// A test over almost equal rates equals a run with a constant rate, step by step, with a teacher as well. The rates
// have relative differences below 1e-9, and the losses differ by less than 1e-8.
BOOST_AUTO_TEST_CASE(equal_rates_make_a_run) {
  const Workshop workshop;
  Experiment dino = dino_experiment(workshop);
  dino.optim.weight_decay_end = -1;
  for (Experiment x : {workshop.experiment(), dino}) {
    x.optim.schedule = "constant", x.optim.lr = 3e-3;
    x.train.dtype = "f64", x.train.epochs = 2, x.train.log_steps = true, x.train.dropout = 0.2;
    const std::string directory = workshop / x.train.method;
    run(x, directory);
    const RunHistory history = read_history(RunPaths(directory));
    const RateTest test = test_rates(x, {3e-3, 3.000000001e-3, 14});
    BOOST_REQUIRE(history.steps.size() == 14U);
    BOOST_REQUIRE(test.points.size() == 14U);
    for (std::size_t i = 0; i < 14; ++i)
      BOOST_TEST(std::abs(test.points[i].loss - history.steps[i].loss.value()) < 1e-8, x.train.method << " " << i);
  }
}

// Smoothed losses that fall by 1, 1, 3 and 1 for successive factors of e in the rate, and then rise.
BOOST_AUTO_TEST_CASE(the_suggestion_follows_its_rule) {
  std::vector<RatePoint> points;
  const double slopes[] = {-1, -1, -3, -1, 2, 2};
  double loss = 20;
  for (int i = 0; i <= 6; ++i) {
    points.push_back({std::exp(i), loss, loss});
    if (i < 6) loss += slopes[i];
  }
  const RateAdvice found = *advice(points);
  BOOST_TEST(std::abs(found.steepest - std::exp(2.5)) < 1e-9);
  BOOST_TEST(found.least == std::exp(4));
  BOOST_TEST(found.suggested() == std::exp(4) / 10);
  for (RatePoint& point : points) point.smoothed = point.lr;
  BOOST_TEST(!advice(points));
}

// Slopes are measured over a tenth of the steps, here four, after the first tenth: neither the fall of the first
// batches nor a single steep step counts.
BOOST_AUTO_TEST_CASE(the_slope_is_one_over_a_tenth_of_the_steps) {
  std::vector<RatePoint> points;
  double loss = 200;
  for (int i = 0; i < 40; ++i) {
    points.push_back({std::exp(i), loss, loss});
    loss -= i < 4 ? 6 : i >= 10 && i < 14 ? 3 : i == 20 ? 5 : i < 30 ? 1 : -2;
  }
  const RateAdvice found = *advice(points);
  BOOST_TEST(std::abs(found.steepest / std::exp(12) - 1) < 1e-12);
  BOOST_TEST(found.least == std::exp(30));
}

// Losses that fall by 1 within 100 steps, with noise: nothing is suggested if the fall may be random, and a low first
// loss is not a minimum.
BOOST_AUTO_TEST_CASE(a_fall_within_the_scatter_suggests_nothing) {
  for (const double scatter : {0.5, 3.0}) {
    std::vector<RatePoint> points;
    for (int i = 0; i < 100; ++i) {
      const double smoothed = 10 - 0.01 * i;
      points.push_back({std::exp(0.1 * i), smoothed + (i % 2 ? scatter : -scatter), smoothed});
    }
    BOOST_TEST(advice(points).has_value() == (scatter < 1));
    points[0].smoothed = 1;
    if (scatter > 1) BOOST_TEST(!advice(points));
  }
}

BOOST_AUTO_TEST_CASE(divergence_ends_the_test_and_leaves_no_numbers) {
  const Workshop workshop;
  const RateTest test = test_rates(workshop.experiment(), {1e-2, 1e30, 60});
  BOOST_TEST(test.diverged);
  BOOST_TEST(test.points.size() < 60);
  for (const RatePoint& point : test.points) BOOST_TEST(std::isfinite(point.smoothed));
}

BOOST_AUTO_TEST_CASE(the_command_prints_draws_and_leaves_no_run) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment()), picture = workshop / "lr.svg";
  check_contains(output_of({"lr", file, "--steps", "60", "-o", picture}),
                 {"learning rate", "smoothed", "suggestion: --set optim.lr=", picture});
  check_contains(read_file(picture), {"<svg ", "learning rate", "smoothed"});
  const std::string csv = output_of({"lr", file, "--steps", "5", "--csv", "-o", picture});
  BOOST_TEST(csv.starts_with("step,lr,loss,smoothed_loss\n1,1e-07,"));
  BOOST_TEST(std::count(csv.begin(), csv.end(), '\n') == 6);
  BOOST_TEST(!std::filesystem::exists(workshop / "config.toml"));
  check_refusal({"lr", file, "--from", "1", "--to", "0.1"}, {"--from is 1, --to is 0.1"});
  check_refusal({"lr", file, "--steps", "1"}, {"--steps"});
  check_refusal({"lr", file, "--steps", "5", "--from", "1e-320"}, {"--from", "1e-320"});  // --to / --from overflows
  check_refusal({"lr", file, "-o", workshop / "none/x.svg"}, {"none/x.svg"});
  check_refusal({"lr", file, "-o", file}, {file + ": expected a name that ends in .svg"});
  check_refusal({"lr", workshop / "none.toml"}, {"none.toml"});
}

BOOST_AUTO_TEST_CASE(the_picture_lies_among_the_runs) {
  const Workshop workshop;
  const std::string file = write_experiment(workshop, workshop.experiment());
  const TemporaryDirectory elsewhere;
  const CommandResult result = run_command(heed_program() + " lr " + file + " --steps 5", elsewhere.path());
  const std::string picture = "runs/" + std::filesystem::path(file).stem().string() + "-lr.svg";
  BOOST_TEST(result.status == 0);
  check_contains(result.output, {"\n" + picture + "\n"});
  check_contains(read_file(elsewhere / picture), {"<svg "});
}

// The picture for a run's configuration is named after the run's directory, even if that is the working directory.
BOOST_AUTO_TEST_CASE(the_picture_of_a_run_has_the_name_of_its_directory) {
  const Workshop workshop;
  std::filesystem::create_directory(workshop / "mine");
  std::filesystem::rename(write_experiment(workshop, workshop.experiment()), workshop / "mine/config.toml");
  for (const char* file : {"config.toml", "./config.toml", "../mine/config.toml"})
    check_contains(run_command(heed_program() + " lr --steps 5 " + file, workshop / "mine").output,
                   {"\nruns/mine-lr.svg\n"});
}

BOOST_AUTO_TEST_SUITE_END()
