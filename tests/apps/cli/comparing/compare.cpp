// heed compare on constructed runs with known figures.
#include "heed/io/json.h"
#include "heed/train/runs/data_record.h"
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"

#include <fmt/format.h>

#include <cmath>
#include <filesystem>
#include <map>

using namespace heed;
using namespace heed::test;

namespace {

struct Comparing : Workshop {
  /// Creates a run of two epochs. The curves are the same for all runs; a finished run also has the given test
  /// accuracy.
  std::string make(const std::string& name, double accuracy, Index seed, double lr, bool finished = true) const {
    Experiment x = experiment();
    x.train.seed = seed;
    x.optim.lr = lr;
    const RunPaths paths(*this / name);
    std::filesystem::create_directories(paths.directory);
    write_file(paths.config(), config_toml(x));
    std::string rows =
        "kind,epoch,step,loss,accuracy,lr,images_per_s\n"
        "train,1,7,2.5,0.25,0.001,112\nvalid,1,7,2,0.5,,\ntrain,2,14,1.5,0.5,0.001,56\nvalid,2,14,1,0.75,,\n";
    if (finished) rows += fmt::format("test,2,14,0.5,{},,\n", accuracy);
    write_file(paths.metrics(), rows);
    return paths.directory;
  }

  static double p(const Json& tests, std::size_t i, const char* test) {
    return tests.items()[i].at(test).at("p").number();
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(cli_compare, Comparing)

BOOST_AUTO_TEST_CASE(seeds_are_arms_and_only_what_differs_is_shown) {
  make("all/a-1", 0.5, 1, 1e-3);
  make("all/a-2", 0.7, 2, 1e-3);
  const std::string b = make("b", 0.8, 1, 3e-3), c = make("c", 0, 2, 3e-3, false);
  const std::string text = output_of({"compare", *this / "all", b, c});
  check_contains(text, {"optim.lr", "0.003", "a-1", "60.00 % ± 14.14", "80.00 %", "1 of 2", "1.5",
                        "validation_accuracy, mean over seeds", "2      75.00 %  75.00 %", "+20.00",
                        "one run has no scatter", "b, seed 2: not finished"});
  for (const char* same : {"train.seed", "model.dim", "optim.clip"})
    BOOST_TEST(text.find(same) == std::string::npos, same << " does not differ");
  check_contains(output_of({"compare", *this / "all", b, "--curve", "loss"}), {"loss, mean", "1      2.5000  2.5000"});
  const std::string csv = output_of({"compare", *this / "all", b, "--csv"});
  check_contains(csv,
                 {"arm,epoch,validation_accuracy,", "\na-1,2,0.75,0,2,1,0,2,1.5,0,2,0.5,0,2\n", "\nb,1,0.5,,1,2,,1,"});
  const Json json = Json::parse(output_of({"compare", *this / "all", b, c, "--json"}));
  BOOST_TEST(json.at("settings").dump() == "{\"optim.lr\":[\"0.001\",\"0.003\"]}");
  BOOST_TEST(json.at("arms").items()[0].at("seconds_per_epoch").at("mean").number() == 1.5);
  BOOST_TEST(json.at("arms").items()[1].at("test_accuracy").at("count").integer() == 1);
  BOOST_TEST(json.at("curves").at("b").items()[1].at("validation_loss").number() == 1);
  BOOST_TEST(json.at("tests").items()[0].at("welch").dump() == "null");
}

// Student's sleep data (see tests/analysis/statistics.cpp), scaled to accuracies.
BOOST_AUTO_TEST_CASE(significance_is_that_of_the_tests) {
  const double first[] = {0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
  const double second[] = {1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};
  for (Index seed = 1; seed <= 10; ++seed) {
    make(fmt::format("runs/a-{:02}", seed), 0.5 + first[seed - 1] / 100, seed, 1e-3);
    make(fmt::format("runs/b-{:02}", seed), 0.5 + second[seed - 1] / 100, seed, 3e-3);
  }
  const Json tests = Json::parse(output_of({"compare", *this / "runs", "--json"})).at("tests");
  BOOST_TEST(std::abs(p(tests, 0, "welch") - 0.07939) < 5e-6);
  BOOST_TEST(std::abs(p(tests, 0, "paired") - 0.002833) < 5e-7);
  BOOST_TEST(std::abs(p(tests, 0, "pooled") - 0.07919) < 5e-6);
  check_contains(output_of({"compare", *this / "runs"}), {"+1.58", "± 1.78", "0.0794", "0.0028"});
  check_contains(output_of({"compare", *this / "runs", "--to", "b-01"}), {"-1.58", "± 1.78", "0.0794", "0.0028"});
  check_refusal({"compare", *this / "runs", "--to", "b-02"}, {"unknown arm 'b-02'; did you mean 'b-01'?"});
  // With 100 images, the difference of 1.58 points is not significant, however well the seeds agree.
  check_contains(output_of({"compare", *this / "runs", "--test-images", "100"}), {"± 4.70"});
}

// The arms have four seeds each and share seeds 2, 3 and 5. Differences of 2, 4 and 3 points have mean 3 and deviation
// 1: t = 3 sqrt 3, and with 2 degrees of freedom p = 1 - t / sqrt(2 + t^2).
BOOST_AUTO_TEST_CASE(pairs_are_runs_of_the_same_seed) {
  const std::map<Index, double> of_a{{1, 0.1}, {2, 0.5}, {3, 0.6}, {5, 0.4}},
      of_b{{2, 0.52}, {3, 0.64}, {4, 0.9}, {5, 0.43}};
  for (const auto& [seed, accuracy] : of_a) make(fmt::format("runs/a-{}", 9 - seed), accuracy, seed, 1e-3);
  for (const auto& [seed, accuracy] : of_b) make(fmt::format("runs/b-{}", seed), accuracy, seed, 3e-3);
  const Json test = Json::parse(output_of({"compare", *this / "runs", "--json"})).at("tests").items()[0].at("paired");
  BOOST_TEST(std::abs(test.at("difference").number() - 0.03) < 1e-12);
  BOOST_TEST(test.at("freedom").number() == 2);
  const double t = 3 * std::sqrt(3.0);
  BOOST_TEST(std::abs(test.at("p").number() - (1 - t / std::sqrt(2 + t * t))) < 1e-12);
}

// Every figure is computed by hand. If two epochs share the best accuracy, the first one counts, and its loss is shown.
// The three epochs of 112 images took 1, 4 and 2 s; the median is shown.
BOOST_AUTO_TEST_CASE(figures_are_those_of_the_rows) {
  const std::string run = make("run", 0.5, 1, 1e-3);
  write_file(run + "/metrics.csv",
             "kind,epoch,step,loss,accuracy,lr,images_per_s\n"
             "train,1,7,2.5,0.25,0.001,112\nvalid,1,7,0.9,0.5,,\n"
             "train,2,14,1.5,0.5,0.001,28\nvalid,2,14,0.7,0.75,,\n"
             "train,3,21,1.25,0.625,0.001,56\nvalid,3,21,0.6,0.75,,\n"
             "test,3,21,0.875,0.375,,\n");
  const Json arm = Json::parse(output_of({"compare", run, "--json"})).at("arms").items()[0];
  const std::map<std::string, double> expected{
      {"test_accuracy", 0.375}, {"test_loss", 0.875}, {"validation_accuracy", 0.75}, {"validation_loss", 0.7},
      {"train_loss", 1.25},     {"epochs", 3},        {"seconds_per_epoch", 2}};
  for (const auto& [figure, value] : expected)
    BOOST_TEST(arm.at(figure).at("mean").number() == value, figure << ": " << arm.at(figure).at("mean").dump());
}

BOOST_AUTO_TEST_CASE(two_seeds_are_said_to_decide_little) {
  for (const Index seed : {1, 2})
    make(fmt::format("a-{}", seed), 0.5, seed, 1e-3), make(fmt::format("b-{}", seed), 0.75, seed, 3e-3);
  const std::string text = output_of({"compare", *this / "a-1", *this / "a-2", *this / "b-1", *this / "b-2"});
  check_contains(text, {"two seeds may agree by chance", "+25.00     -         -          -"});
}

// There are more nested directories than files that may be open at a time.
BOOST_AUTO_TEST_CASE(a_directory_that_cannot_be_read_is_an_error, *boost::unit_test::precondition(without_sanitizer)) {
  make("a", 0.5, 1, 1e-3), make("b", 0.7, 1, 3e-3);
  std::string deep = *this / "c";
  for (int i = 0; i < 30; ++i) deep += "/c";
  std::filesystem::create_directories(deep);
  const CommandResult result = run_command("ulimit -n 24 && " + heed_program() + " compare " + (*this / ""));
  BOOST_TEST(result.status == 2);
  BOOST_TEST(result.output == "");
  BOOST_TEST(is_line_with(result.errors, "/c/c/c: cannot read: Too many open files"), result.errors);
  output_of({"compare", *this / ""});
}

BOOST_AUTO_TEST_CASE(the_curves_are_drawn) {
  const std::string a = make("a", 0.5, 1, 1e-3), b = make("b<", 0.7, 1, 3e-3), picture = *this / "curves.svg";
  output_of({"compare", a, b, "-o", picture});
  check_contains(read_file(picture),
                 {"<svg ", ">validation accuracy, %<", ">b&lt;</text>", "<path d=\" M", "</svg>\n"});
  check_refusal({"compare", a, b, "-o", a + "/metrics.csv"}, {"metrics.csv: expected a name that ends in .svg"});
}

// An arm without finished runs does not cause the note that one run has no scatter.
BOOST_AUTO_TEST_CASE(an_arm_without_finished_runs_is_not_one_run) {
  std::vector<std::string> words{"compare"};
  for (const Index seed : {1, 2, 3})
    for (const double lr : {1e-3, 3e-3, 9e-3})
      words.push_back(
          make(fmt::format("{}-{}", seed, lr), 0.5 + 0.01 * static_cast<double>(seed), seed, lr, lr < 9e-3));
  const std::string text = output_of(words);
  check_contains(text, {"0 of 3", "± "});
  BOOST_TEST(text.find("no scatter") == std::string::npos, text);
}

// Figures in a file may be so large that their squares overflow.
BOOST_AUTO_TEST_CASE(figures_too_large_to_be_squared_have_no_scatter) {
  std::vector<std::string> words{"compare", "--figure", "test_loss"};
  for (const Index seed : {1, 2, 3})
    for (const double lr : {1e-3, 3e-3}) {
      words.push_back(make(fmt::format("{}-{}", seed, lr), 0.5, seed, lr));
      const std::string metrics = words.back() + "/metrics.csv", row = "test,2,14,";
      const std::string text = read_file(metrics);
      write_file(metrics, text.substr(0, text.find(row)) + fmt::format("{}{}e300,0.5,,\n", row, seed));
    }
  const std::string shown = output_of(words);
  BOOST_TEST(shown.find("inf") == std::string::npos, shown);
  BOOST_TEST(shown.find("nan") == std::string::npos, shown);
}

// The time is linear in the number of epochs: a linear search for each of 50,000 epochs would take minutes.
BOOST_AUTO_TEST_CASE(very_many_epochs, *boost::unit_test::precondition(without_sanitizer)) {
  const std::string run = make("a", 0.5, 1, 1e-3), page = *this / "page.html";
  std::string rows = "kind,epoch,step,loss,accuracy,lr,images_per_s\n";
  constexpr Index epochs = 50'000;
  for (Index epoch = 1; epoch <= epochs; ++epoch)
    rows += fmt::format("train,{0},{1},1,0.5,0.001,9\nvalid,{0},{1},1,0.5,,\n", epoch, 7 * epoch);
  write_file(run + "/metrics.csv", rows + fmt::format("test,{},{},1,0.5,,\n", epochs, 7 * epochs));
  for (const std::string& words :
       {"compare " + run, "compare --csv " + run, "compare --json " + run, "report --no-images -o " + page + " " + run})
    BOOST_TEST(run_command("timeout 30 " + heed_program() + " " + words).status == 0, words);
}

BOOST_AUTO_TEST_CASE(what_is_refused) {
  const std::string a = make("a", 0.5, 1, 1e-3), again = make("again", 0.5, 1, 1e-3);
  check_refusal({"compare", *this / "none"}, {"none", "contains no run"});
  check_refusal({"compare", a, again}, {a, again, "the same configuration and seed"});
  check_refusal({"compare", a, "--curve", "los"}, {"--curve"});
  check_refusal({"compare", a, "--csv", "--figure", "test_loss"}, {"--figure", "excludes", "--csv"});
  check_refusal({"compare", a, "--csv", "--test-images", "10"}, {"--test-images", "excludes", "--csv"});
  check_refusal({"compare"}, {"RUN"});
  output_of({"compare", a, a});  // one run, given twice
  write_file(a + "/metrics.csv", "kind,epoch,step,loss,accuracy,lr,images_per_s\ntrain,x\n");
  check_refusal({"compare", a}, {"metrics.csv:2: found 'train,x'"});
  check_refusal({"report", a, "-o", *this / "page.html"}, {"metrics.csv:2: found 'train,x'"});
}

// Arms that would have the same name are named by the full path of their first run.
BOOST_AUTO_TEST_CASE(arms_of_one_name_are_named_by_their_directories) {
  const std::string first = make("x/run", 0.5, 1, 1e-3), again = make("x/again", 0.75, 2, 1e-3),
                    second = make("y/run", 0.25, 1, 3e-3), other = make("y/other", 0.25, 1, 4e-3);
  const Json json = Json::parse(output_of({"compare", first, again, other, second, "--json", "--to", "other"}));
  std::vector<std::string> names;
  for (const Json& arm : json.at("arms").items()) names.push_back(arm.at("arm").text());
  BOOST_TEST(names == (std::vector<std::string>{"other", first, second}), boost::test_tools::per_element());
  BOOST_TEST(json.at("settings").dump() == R"({"optim.lr":["0.004","0.001","0.003"]})");
  BOOST_TEST(json.at("curves").at(second).items().size() == 2u);
  const Json& tests = json.at("tests");
  for (std::size_t i = 0; i < 2; ++i) {
    BOOST_TEST(tests.items().at(i).at("arm").text() == names[i + 1]);
    BOOST_TEST(tests.items().at(i).at("against").text() == "other");
  }
  check_contains(output_of({"compare", first, again}), {"the runs have the same configuration except for seeds\n"});
}

// The runs of an arm have the same data, at any path. If all other runs have the same data, a run without a record of
// its data is assumed to have them, too.
BOOST_AUTO_TEST_CASE(other_data_are_another_arm) {
  const auto run_on = [&](const std::string& name, Index seed, const std::string& path,
                          const std::map<std::string, std::string>& files, const std::string& validation) {
    const std::string run = make(name, 0.5, seed, 1e-3);
    write_file(RunPaths(run).data(),
               data_json({"mnist", "mnist", path, {.validation = {validation}, .files = files}, {}, {}}));
    return run;
  };
  const std::map<std::string, std::string> one{{"x", "1"}, {"y", "2"}}, two{{"x", "1"}, {"y", "3"}, {"z", "4"}};
  const std::string a = run_on("a", 1, "/one", one, "x"), moved = run_on("moved", 2, "/two", one, "y"),
                    b = run_on("b", 1, "/two", two, "x"), old = make("old", 0.5, 3, 1e-3);
  const auto check = [&](std::vector<std::string> runs, const std::string& arms, const std::vector<std::string>& data) {
    runs.insert(runs.begin(), "compare"), runs.push_back("--json");
    const Json json = Json::parse(output_of(runs));
    std::string found;
    for (const Json& arm : json.at("arms").items())
      found += fmt::format("{}:{} ", arm.at("arm").text(), arm.at("runs").items().size());
    BOOST_TEST(found == arms);
    const Json settings = data.empty() ? Json::object() : Json::object({{"data", data}});
    BOOST_TEST(json.at("settings").dump() == settings.dump());
  };
  check({a, moved, b}, "a:2 b:1 ", {"/one", "/two: 1 added (z), 1 edited (y)"});
  check({b, a}, "b:1 a:1 ", {"/two", "/one: 1 removed (z), 1 edited (y)"});
  check({a, moved, old}, "a:3 ", {});
  check({old, a}, "old:2 ", {});
  check({old, a, b}, "old:1 a:1 b:1 ", {"-", "/one", "/two: 1 added (z), 1 edited (y)"});
  check_contains(in_one_line(output_of({"compare", a, b})),
                 {"arm data a /one b /two: 1 added (z), 1 edited (y) arm seeds"});
}

BOOST_AUTO_TEST_CASE(a_name_with_a_comma_is_one_field_of_csv) {
  const std::string run = make("x,y", 0.5, 1, 1e-3);
  check_contains(output_of({"compare", run, "--csv"}), {"\n\"x,y\",1,0.5,,1,", "\n\"x,y\",2,0.75,,1,"});
}

// The mean of 2 and 1 epochs is not rounded to a whole number.
BOOST_AUTO_TEST_CASE(counts_that_differ_between_seeds_have_a_decimal) {
  const std::string a = make("a", 0.5, 1, 1e-3), again = make("again", 0.5, 2, 1e-3);
  check_contains(in_one_line(output_of({"compare", a, again})), {" 75.00 % ± 0.00 2 1.5 ± 0.0 - "});
  write_file(again + "/metrics.csv",
             "kind,epoch,step,loss,accuracy,lr,images_per_s\n"
             "train,1,7,2.5,0.25,0.001,112\nvalid,1,7,1,0.75,,\ntest,1,7,0.5,0.5,,\n");
  check_contains(in_one_line(output_of({"compare", a, again})), {" 75.00 % ± 0.00 1.5 ± 0.7 "});
}

// Runs of one, two and three epochs, and an epoch without validation: each mean is over the runs that have a value.
BOOST_AUTO_TEST_CASE(curves_of_runs_of_different_lengths) {
  const auto curve = [&](const std::string& name, Index seed, double lr, const std::vector<const char*>& accuracies) {
    std::string rows = "kind,epoch,step,loss,accuracy,lr,images_per_s\n";
    for (std::size_t e = 1; const char* const accuracy : accuracies) {
      rows += fmt::format("train,{},{},{},0.5,0.001,112\n", e, 7 * e, static_cast<double>(seed) * 4 / double(e));
      if (*accuracy) rows += fmt::format("valid,{},{},1,{},,\n", e, 7 * e, accuracy);
      ++e;
    }
    write_file(make(name, 0, seed, lr) + "/metrics.csv", rows);
    return *this / name;
  };
  const std::string a = curve("a", 1, 1e-3, {"0.5", "", "0.75"}), again = curve("again", 2, 1e-3, {"0.25"}),
                    b = curve("b", 3, 3e-3, {"0.625", "0.875"}), picture = *this / "curve.svg";
  const std::vector<std::string> runs{"compare", a, again, b};
  const auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), runs.begin(), runs.end());
    return output_of(more);
  };
  check_contains(in_one_line(with({})), {"epoch a b 1 37.50 % 62.50 % 2 - 87.50 % 3 75.00 % - "});
  check_contains(in_one_line(with({"--curve", "loss"})),
                 {"loss, mean over seeds epoch a b 1 6.0000 12.0000 2 2.0000 6.0000 3 1.3333 - "});
  const std::string csv = with({"--csv"});
  check_contains(csv, {"\na,2,,,0,,,0,2,,1,", "\na,3,0.75,,1,1,,1,", "\nb,2,0.875,,1,"});
  BOOST_TEST(lines_of(csv).size() == 1u + 3 + 2);
  const Json curves = Json::parse(with({"--json"})).at("curves");
  BOOST_TEST(curves.at("a").items().at(1).at("validation_accuracy").dump() == "null");
  BOOST_TEST(curves.at("b").items().size() == 2u);
  // An arm's curve is as long as its longest run, even if that is not the first one.
  const std::string reversed = output_of({"compare", again, a, b, "--csv"});
  check_contains(reversed, {"\nagain,2,,,0,,,0,2,,1,", "\nagain,3,0.75,,1,1,,1,"});
  BOOST_TEST(lines_of(reversed).size() == 1u + 3 + 2);
  // The picture is drawn with --csv, too; arm a's curve has points at epochs 1 and 3 only.
  BOOST_TEST(with({"--csv", "-o", picture}) == csv);
  const std::string svg = read_file(picture), line = svg.substr(svg.find("<path d=\" M"));
  BOOST_TEST(std::ranges::count(line.substr(0, line.find("fill")), 'L') == 1);
}

// The seeds of an arm have equal accuracies. With 100 images, s^2 is p (1 - p) / 100 for the mean p of both arms, and
// the half-width is 2.776445 s sqrt(2/3). For a loss, s has no lower bound.
BOOST_AUTO_TEST_CASE(test_images_bound_every_accuracy) {
  for (const Index seed : {1, 2, 3})
    for (const auto& [name, accuracy] : {std::pair("a", 0.5), {"b", 0.75}, {"c", 1.0}})
      make(fmt::format("runs/{}-{}", name, seed), accuracy, seed, accuracy / 100);
  const auto half_widths = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words{"compare", *this / "runs", "--json"};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<double> found;
    const Json json = Json::parse(output_of(words));
    for (const Json& test : json.at("tests").items()) found.push_back(test.at("pooled").at("half_width").number());
    return found;
  };
  const auto check = [&](const std::string& figure, const std::vector<double>& shares) {
    const std::vector<double> found = half_widths({"--figure", figure, "--test-images", "100"});
    BOOST_TEST_REQUIRE(found.size() == shares.size());
    for (std::size_t i = 0; i < shares.size(); ++i)
      BOOST_TEST(std::abs(found[i] - 2.776445 * std::sqrt(shares[i] * (1 - shares[i]) / 100 * 2 / 3)) < 1e-7, figure);
  };
  check("test_accuracy", {0.625, 0.75});
  check("validation_accuracy", {0.75, 0.75});
  check("test_loss", {0, 0});
  check_contains(in_one_line(output_of({"compare", *this / "runs", "--test-images", "100"})),
                 {"b-1 +25.00 ± 10.97 ", "c-1 +50.00 ± 9.82 "});
}

// A run may be in a directory below another run, or be the target of a link; other links to directories are not
// followed. A directory with only one of a run's two files is not a run.
BOOST_AUTO_TEST_CASE(runs_below_a_directory) {
  make("all/a", 0.5, 1, 1e-3), make("all/a/below", 0.5, 2, 1e-3), make("all/b/c/d", 0.5, 3, 1e-3);
  const std::string away = make("away/e", 0.5, 4, 1e-3);
  make("far/f", 0.5, 5, 1e-3);
  std::filesystem::remove(RunPaths(make("all/only-config", 0.5, 6, 1e-3)).metrics());
  std::filesystem::remove(RunPaths(make("all/only-metrics", 0.5, 7, 1e-3)).config());
  std::filesystem::create_directory_symlink(away, *this / "all/link");
  std::filesystem::create_directory_symlink(*this / "far", *this / "all/others");
  std::filesystem::create_directory_symlink(*this / "all", *this / "all/b/loop");
  const auto seeds = [](const std::string& directory) {
    const Json json = Json::parse(output_of({"compare", directory, "--json"}));
    BOOST_TEST(json.at("arms").items().size() == 1u);
    std::vector<Index> found;
    for (const Json& run : json.at("arms").items()[0].at("runs").items()) found.push_back(run.at("seed").integer());
    return found;
  };
  BOOST_TEST(seeds(*this / "all") == (std::vector<Index>{1, 2, 3, 4}), boost::test_tools::per_element());
  BOOST_TEST(seeds(*this / "all/a") == std::vector<Index>{1}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
