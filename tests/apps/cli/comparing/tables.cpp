// Every number in the tables of heed sweep and heed compare, computed by hand from the files of runs.
#include "heed/config/sweep.h"
#include "heed/io/json.h"
#include "heed/train/runs/run.h"
#include "support/cli.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

using namespace heed;
using namespace heed::test;

namespace {

/// Figures of a run of two epochs, the first of which has the best validation accuracy. Epochs have 7 batches of 16
/// images.
struct HandWritten {
  const char* arm;
  Index seed;
  std::vector<double> loss, accuracy, seconds, valid_loss, valid_accuracy;
  double test_loss, test_accuracy;
  Index parameters;
};

const std::vector<HandWritten> hand_written{
    {"a", 1, {2.5, 1.5}, {0.25, 0.5}, {1, 2}, {0.9, 0.8}, {0.75, 0.5}, 0.4, 0.5, 1234},
    {"a", 2, {2.25, 1}, {0.375, 0.625}, {4, 7}, {0.7, 0.6}, {0.65, 0.625}, 0.8, 0.7, 1234},
    {"b", 1, {2, 0.5}, {0.5, 0.75}, {8, 16}, {0.5, 0.3}, {0.875, 0.75}, 0.2, 0.8, 5678},
    {"b", 2, {1.75, 0.25}, {0.625, 0.875}, {1, 1}, {0.4, 0.2}, {0.9, 0.25}, 0.25, 0.85, 5678},
    {"b", 3, {1.5, 0.125}, {0.75, 1}, {2, 2}, {0.3, 0.1}, {0.925, 0.5}, 0.15, 0.9, 5678}};

/// The figures' means and deviations by arm, in the order of the columns. Arm a has two values x and y: (x + y) / 2 and
/// |x - y| / sqrt 2. Arm b has the mean and the deviation of three values.
using Figures = std::vector<std::pair<std::string, std::pair<double, double>>>;
const double root_2 = std::sqrt(2);
const Figures figures_a{{"test_accuracy", {0.6, 0.2 / root_2}},       {"test_loss", {0.6, 0.4 / root_2}},
                        {"validation_accuracy", {0.7, 0.1 / root_2}}, {"validation_loss", {0.8, 0.2 / root_2}},
                        {"train_loss", {1.25, 0.5 / root_2}},         {"epochs", {2, 0}},
                        {"seconds_per_epoch", {3.5, 4 / root_2}},     {"parameters", {1234, 0}}};
const Figures figures_b{{"test_accuracy", {0.85, 0.05}},
                        {"test_loss", {0.2, 0.05}},
                        {"validation_accuracy", {0.9, 0.025}},
                        {"validation_loss", {0.4, 0.1}},
                        {"train_loss", {0.875 / 3, std::sqrt((0.328125 - 0.875 * 0.875 / 3) / 2)}},
                        {"epochs", {2, 0}},
                        {"seconds_per_epoch", {5, std::sqrt((49 + 16 + 9) / 2)}},
                        {"parameters", {5678, 0}}};

/// A sweep of two arms and three seeds; arm a diverged with the third seed.
struct Tables : Workshop {
  std::string file = *this / "tiny.toml", out = *this / "cells";
  std::map<std::string, std::string> hashes;

  Tables() {
    write_file(file, fmt::format("base = \"{}\"\nseeds = 3\n[arms.a]\n[arms.b]\noptim.lr = 3e-3\n",
                                 write_experiment(*this, experiment())));
    for (const SweepCell& cell : load_sweep(file, {}, 0)) {
      const RunPaths paths(fmt::format("{}/{}/seed-{}", out, cell.arm, cell.seed()));
      std::filesystem::create_directories(paths.directory);
      for (const std::string& config : {paths.config(), paths.directory + "/cell.toml"})
        write_file(config, config_toml(cell.experiment));
      hashes[fmt::format("{},{}", cell.arm, cell.seed())] = configuration_hash(cell.experiment);
      write_file(paths.environment(), R"({"version": "0.1.9"})");
      std::string rows = "kind,epoch,step,loss,accuracy,lr,images_per_s\n", diverged;
      const auto run = std::ranges::find_if(
          hand_written, [&](const HandWritten& r) { return r.arm == cell.arm && r.seed == cell.seed(); });
      if (run == hand_written.end()) {
        diverged = R"(, "diverged": "the loss is inf")";
      } else {
        for (const std::size_t e : {0, 1})
          rows += fmt::format("train,{0},{1},{2},{3},0.001,{4}\nvalid,{0},{1},{5},{6},,\n", e + 1, 7 * (e + 1),
                              run->loss[e], run->accuracy[e], 112 / run->seconds[e], run->valid_loss[e],
                              run->valid_accuracy[e]);
        rows += fmt::format("test,2,14,{},{},,\n", run->test_loss, run->test_accuracy);
        write_file(paths.cost(), fmt::format(R"({{"contractions": {{"params": {}}}}})", run->parameters));
      }
      write_file(paths.metrics(), rows);
      write_file(paths.directory + "/cell.json",
                 fmt::format(R"({{"arm": "{}", "hash": "", "version": "0.1.9"{}}})", cell.arm, diverged));
    }
  }

  std::string sweep(std::vector<std::string> more) const {
    more.insert(more.begin(), {"sweep", file, "--out", out, "--table"});
    return output_of(more);
  }
};

std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line + ",");
  for (std::string field; std::getline(in, field, ',');) fields.push_back(field);
  return fields;
}

/// Checks a printed value up to rounding: a sum of three values depends on their order.
void check_near(const std::string& found, double expected, const std::string& what) {
  BOOST_TEST_REQUIRE(!found.empty(), what);
  BOOST_TEST(std::abs(std::stod(found) - expected) <= 1e-12 * std::max(1.0, std::abs(expected)),
             what << ": " << found << ", expected " << expected);
}

/// Returns the values of a run, in the order of the columns.
std::vector<double> figures_of(const HandWritten& run) {
  return {run.test_accuracy,
          run.test_loss,
          run.valid_accuracy[0],
          run.valid_loss[0],
          run.loss[1],
          2,
          (run.seconds[0] + run.seconds[1]) / 2,
          static_cast<double>(run.parameters)};
}

/// The members of HandWritten that hold curves, by name.
const std::map<std::string, std::vector<double> HandWritten::*> curves_by_name{
    {"loss", &HandWritten::loss},
    {"accuracy", &HandWritten::accuracy},
    {"validation_loss", &HandWritten::valid_loss},
    {"validation_accuracy", &HandWritten::valid_accuracy}};

/// Returns a curve's mean over an arm's runs; `epoch` counts from 0.
double mean_of(const std::string& arm, std::vector<double> HandWritten::*curve, std::size_t epoch) {
  double sum = 0, count = 0;
  for (const HandWritten& run : hand_written)
    if (run.arm == arm) sum += (run.*curve)[epoch], ++count;
  return sum / count;
}

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_tables, Tables)

BOOST_AUTO_TEST_CASE(the_table_of_arms_as_csv) {
  const std::vector<std::string> lines = lines_of(sweep({"--csv"}));
  BOOST_TEST_REQUIRE(lines.size() == 3u);
  std::string header = "arm,runs,finished";
  for (const auto& [figure, values] : figures_a) header += fmt::format(",{0},{0}_sd", figure);
  BOOST_TEST(lines[0] == header);
  for (const bool second : {false, true}) {
    const std::vector<std::string> fields = fields_of(lines[second ? 2 : 1]);
    const Figures& expected = second ? figures_b : figures_a;
    BOOST_TEST_REQUIRE(fields.size() == 3 + 2 * expected.size());
    BOOST_TEST(fields[0] == (second ? "b" : "a"));
    BOOST_TEST(fields[1] == "3");
    BOOST_TEST(fields[2] == (second ? "3" : "2"));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      check_near(fields[3 + 2 * i], expected[i].second.first, fields[0] + " " + expected[i].first);
      check_near(fields[4 + 2 * i], expected[i].second.second, fields[0] + " sd of " + expected[i].first);
    }
  }
}

BOOST_AUTO_TEST_CASE(the_table_of_runs_as_csv) {
  const std::vector<std::string> lines = lines_of(sweep({"--csv", "--runs"}));
  BOOST_TEST_REQUIRE(lines.size() == 7u);
  std::string header = "arm,seed,state,hash,version";
  for (const auto& [figure, values] : figures_a) header += "," + figure;
  BOOST_TEST(lines[0] == header);
  BOOST_TEST(lines[3] == fmt::format("a,3,diverged,{},0.1.9,,,,,,,,", hashes.at("a,3")));
  for (std::size_t i = 0; i < hand_written.size(); ++i) {
    const HandWritten& run = hand_written[i];
    const std::string start = fmt::format("{},{}", run.arm, run.seed);
    const std::string& line = lines[i < 2 ? 1 + i : 2 + i];
    BOOST_TEST(line.starts_with(fmt::format("{},finished,{},0.1.9,", start, hashes.at(start))), line);
    const std::vector<std::string> fields = fields_of(line);
    const std::vector<double> expected = figures_of(run);
    BOOST_TEST_REQUIRE(fields.size() == 5 + expected.size());
    for (std::size_t f = 0; f < expected.size(); ++f)
      check_near(fields[5 + f], expected[f], start + figures_a[f].first);
  }
}

BOOST_AUTO_TEST_CASE(the_table_of_arms_as_text) {
  const std::string a = "2 of 3 60.00 % ± 14.14 0.6000 ± 0.2828 70.00 % ± 7.07 2 3.5 ± 2.8 1,234",
                    b = "3 85.00 % ± 5.00 0.2000 ± 0.0500 90.00 % ± 2.50 2 5.0 ± 6.1 5,678",
                    notes = "a, seed 3: diverged: the loss is inf 5 runs are from heed 0.1.9";
  const std::string titles = "arm seeds test accuracy test loss validation epochs s/epoch parameters";
  BOOST_TEST(in_one_line(sweep({})) == titles + " a " + a + " b " + b + " " + notes);
  check_contains(in_one_line(output_of({"compare", out})), {titles + " a " + a + " b " + b + " " + notes});
  check_contains(sweep({"--markdown"}),
                 {"| b | 3 | 85.00 % ± 5.00 | 0.2000 ± 0.0500 | 90.00 % ± 2.50 | 2 | 5.0 ± 6.1 | "
                  "5,678 |"});
}

BOOST_AUTO_TEST_CASE(the_table_of_arms_as_json) {
  for (const std::string& text : {sweep({"--json"}), output_of({"compare", out, "--json"})}) {
    const Json json = Json::parse(text);
    for (const bool second : {false, true}) {
      const Json& arm = json.at("arms").items()[second ? 1 : 0];
      BOOST_TEST(arm.at("arm").text() == (second ? "b" : "a"));
      BOOST_TEST(arm.at("finished").integer() == (second ? 3 : 2));
      for (const auto& [figure, values] : second ? figures_b : figures_a) {
        BOOST_TEST(arm.at(figure).at("count").integer() == (second ? 3 : 2));
        check_near(fmt::format("{}", arm.at(figure).at("mean").number()), values.first, figure);
        check_near(fmt::format("{}", arm.at(figure).at("sd").number()), values.second, figure);
      }
      for (std::size_t r = 0; r < 3; ++r) {
        const Json& run = arm.at("runs").items()[r];
        BOOST_TEST(run.at("seed").integer() == static_cast<Index>(r) + 1);
        const bool diverged = !second && r == 2;
        BOOST_TEST(run.at("state").text() == (diverged ? "diverged" : "finished"));
        if (diverged) BOOST_TEST(run.at("note").text() == "the loss is inf");
        const std::vector<double> expected =
            diverged ? std::vector<double>() : figures_of(hand_written[r + 2 * second]);
        for (std::size_t f = 0; f < expected.size(); ++f)
          check_near(run.at(figures_a[f].first).dump(), expected[f], figures_a[f].first);
      }
    }
  }
}

// Welch's test and the pooled t-test report the same difference of means; the paired test uses seeds 1 and 2, which
// both arms finished.
BOOST_AUTO_TEST_CASE(every_figure_can_be_tested) {
  for (std::size_t f = 0; f < figures_a.size(); ++f) {
    const std::string figure = figures_a[f].first;
    const Json test = Json::parse(output_of({"compare", out, "--figure", figure, "--json"})).at("tests").items()[0];
    BOOST_TEST(test.at("figure").text() == figure);
    BOOST_TEST(test.at("arm").text() == "b");
    BOOST_TEST(test.at("against").text() == "a");
    const double difference = figures_b[f].second.first - figures_a[f].second.first;
    check_near(test.at("pooled").at("difference").dump(), difference, figure);
    BOOST_TEST(test.at("pooled").at("freedom").number() == 3);
    if (figures_a[f].second.second > 0) check_near(test.at("welch").at("difference").dump(), difference, figure);
    double paired = 0;
    for (const std::size_t seed : {0, 1})
      paired += (figures_of(hand_written[2 + seed])[f] - figures_of(hand_written[seed])[f]) / 2;
    check_near(test.at("paired").at("difference").dump(), paired, figure);
    BOOST_TEST(test.at("paired").at("freedom").number() == 1);
  }
  // s^2 = (0.08 + 0.005) / 3 and t = 3.182446 for 3 degrees of freedom: 3.182446 sqrt(0.0283333 (1/2 + 1/3)) = 0.4890.
  check_contains(in_one_line(output_of({"compare", out, "--figure", "test_loss"})),
                 {"test_loss, difference to a arm difference 95 % p, Welch p, paired b -0.4000 ± 0.4890 "});
}

BOOST_AUTO_TEST_CASE(every_curve_is_shown) {
  const std::vector<std::string> csv = lines_of(output_of({"compare", out, "--csv"})), header = fields_of(csv.at(0));
  BOOST_TEST_REQUIRE(csv.size() == 5u);
  const Json json = Json::parse(output_of({"compare", out, "--json"})).at("curves");
  for (const auto& [name, curve] : curves_by_name) {
    const double unit = name.ends_with("accuracy") ? 100 : 1;
    const auto shown = [&](double x) {
      return unit == 100 ? fmt::format("{:.2f} %", 100 * x) : fmt::format("{:.4f}", x);
    };
    std::string table = name + ", mean over seeds epoch a b";
    for (const std::size_t epoch : {0, 1}) {
      table += fmt::format(" {}", epoch + 1);
      for (const std::string arm : {"a", "b"}) {
        const double mean = mean_of(arm, curve, epoch);
        table += " " + shown(mean);
        check_near(json.at(arm).items()[epoch].at(name).dump(), mean, name);
        const std::vector<std::string> fields = fields_of(csv[1 + epoch + (arm == "b" ? 2 : 0)]);
        BOOST_TEST(fields[0] == arm);
        BOOST_TEST(fields[1] == std::to_string(epoch + 1));
        const auto column = static_cast<std::size_t>(std::ranges::find(header, name) - header.begin());
        check_near(fields.at(column), mean, name);
        BOOST_TEST(header.at(column + 1) == name + "_sd");
        BOOST_TEST(header.at(column + 2) == name + "_runs");
        BOOST_TEST(fields.at(column + 2) == (arm == "a" ? "2" : "3"));
        if (arm == "b") continue;
        const double x = (hand_written[0].*curve)[epoch], y = (hand_written[1].*curve)[epoch];
        check_near(fields.at(column + 1), std::abs(x - y) / root_2, name);
      }
    }
    check_contains(in_one_line(output_of({"compare", out, "--curve", name})), {table + " "});
    const std::string picture = *this / "curve.svg";
    output_of({"compare", out, "--curve", name, "-o", picture});
    std::string title = name;
    std::ranges::replace(title, '_', ' ');
    check_contains(read_file(picture), {">" + title + (unit == 100 ? ", %<" : "<")});
  }
}

// All other arms, in their order, are compared with the reference arm.
BOOST_AUTO_TEST_CASE(several_arms_are_compared_with_one) {
  for (const Index seed : {1, 2, 3}) {
    Experiment x = experiment();
    x.optim.lr = 5e-3, x.train.seed = seed;
    const RunPaths paths(fmt::format("{}/c/seed-{}", out, seed));
    std::filesystem::create_directories(paths.directory);
    write_file(paths.config(), config_toml(x));
    write_file(paths.metrics(), read_file(fmt::format("{}/b/seed-{}/metrics.csv", out, seed)));
    write_file(paths.directory + "/cell.json", R"({"arm": "c", "hash": "", "version": ""})");
  }
  const Json tests = Json::parse(output_of({"compare", out, "--to", "c", "--json"})).at("tests");
  BOOST_TEST_REQUIRE(tests.items().size() == 2u);
  for (const std::size_t i : {0, 1}) {
    BOOST_TEST(tests.items()[i].at("against").text() == "c");
    BOOST_TEST(tests.items()[i].at("arm").text() == (i == 0 ? "a" : "b"));
  }
  check_near(tests.items()[0].at("pooled").at("difference").dump(), -0.25, "a against c");
  check_near(tests.items()[1].at("pooled").at("difference").dump(), 0, "b against c");
  check_contains(output_of({"compare", out, "--to", "c"}),
                 {"2 tests at 5 %: 0.1 false alarms are expected", "test_accuracy in points, difference to c\n"});
}

// Notes count the finished runs of each version, unless all finished runs are of the program's own version.
BOOST_AUTO_TEST_CASE(runs_of_each_version_are_counted) {
  const auto version = [&](const std::string& cell, const std::string& text) {
    write_file(RunPaths(out + "/" + cell).environment(), fmt::format(R"({{"version": "{}"}})", text));
  };
  for (const char* cell : {"a/seed-1", "b/seed-2"}) version(cell, "0.1.8");
  version("a/seed-3", "0.0.1");  // diverged
  version("b/seed-1", HEED_VERSION);
  std::string text = output_of({"compare", out});
  check_contains(text, {"2 runs are from heed 0.1.8\n", "2 runs are from heed 0.1.9\n",
                        fmt::format("1 run is from heed {}\n", HEED_VERSION)});
  BOOST_TEST(text.find("0.0.1") == std::string::npos, text);
  for (const char* cell : {"a/seed-1", "a/seed-2", "b/seed-1", "b/seed-2", "b/seed-3"}) version(cell, HEED_VERSION);
  text = output_of({"compare", out});
  BOOST_TEST(text.find("from heed") == std::string::npos, text);
}

BOOST_AUTO_TEST_SUITE_END()
