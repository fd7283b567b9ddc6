// heed spectrum and heed residual, on runs with random weights.
#include "support/cli.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "heed/train/runs/run.h"

#include <boost/test/unit_test.hpp>

#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// Run directories of models with 5 tokens, 2 blocks and 2 heads.
struct Runs {
  Workshop workshop;

  Runs() {
    run("softmax", {{"softmax"}, {}, {}});
    run("adder", {{"adder"}, {}, {}});
    run("simple", {{"aft"}, {{"variant", {"simple", ""}}}, {}});
    run("xca", {{"xca"}, {}, {}});
    run("soft", {{"softmax", "soft"}, {{"landmarks", {"4", ""}}}, {}});
  }

  void run(const std::string& name, const AttentionConfig& attention) const {
    Experiment x = workshop.experiment();
    x.attention = attention;
    const VisionTransformer model(x.model, x.attention);
    Parameters<float> parameters(model.parameters());
    parameters.initialise(5);
    const RunPaths paths(workshop / name);
    std::filesystem::create_directory(paths.directory);
    write_file(paths.config(), to_toml(x));
    SafetensorsWriter weights;
    add_weights(weights, parameters);
    weights.write(paths.best());
  }
};

std::vector<std::vector<std::string>> table(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line);
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(analysis)

BOOST_FIXTURE_TEST_CASE(the_spectrum_of_each_head_without_and_with_the_identity, Runs) {
  const Finished run = heed_with({"spectrum", workshop / "adder", "--images", "20"});
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.out.find("mean over heads and 20 test images") != std::string::npos, run.out);
  const auto rows = table(workshop / "adder/spectrum.csv");
  BOOST_REQUIRE(rows.size() == 1 + 2 * 2 * 2 * 5u);  // matrices, blocks, heads, indices
  double before = 0;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    BOOST_REQUIRE(rows[i].size() == 9u);
    BOOST_TEST((rows[i][1] == "A+I") == (rows[i][2] == "true"));
    const double cumulative = std::stod(rows[i][7]);
    BOOST_TEST((rows[i][5] == "1" || cumulative >= before));
    if (rows[i][5] == "5") BOOST_TEST(cumulative == 1);
    before = cumulative;
  }
  // Maps of untrained blocks are nearly uniform: one value near 1, the others small; with the identity 2, 1, 1, 1, 1.
  BOOST_TEST(std::stod(rows[1][6]) > 0.9);
  BOOST_TEST(rows[1][8] == "1");
  for (const auto& row : rows)
    if (row[1] == "A+I") BOOST_TEST(row[8] == "5");
}

// A map over 8 channels instead of 5 tokens.
BOOST_FIXTURE_TEST_CASE(the_spectrum_of_a_map_among_channels, Runs) {
  const Finished run = heed_with({"spectrum", workshop / "xca", "--images", "20"});
  BOOST_TEST(run.status == 0, run.err);
  BOOST_TEST(run.out.find("of channels") != std::string::npos, run.out);
  BOOST_TEST(table(workshop / "xca/spectrum.csv").size() == 1 + 2 * 2 * 2 * 8u);  // matrices, blocks, heads, indices
}

BOOST_FIXTURE_TEST_CASE(residuals_fall_and_do_not_depend_on_threads, Runs) {
  for (const char* const threads : {"1", "2"}) {
    const Finished run = heed_with({"residual", workshop / "soft", "--images", "20", "--iterations", "20", "--threads",
                                    threads, "-o", workshop / threads});
    BOOST_TEST(run.status == 0, run.err);
    BOOST_TEST(run.out.find("below 0.001 after 20 steps, number of 40 matrices: damped 40") != std::string::npos,
               run.out);
  }
  BOOST_TEST((read_file(workshop / "1") == read_file(workshop / "2")));
  const auto rows = table(workshop / "1");
  BOOST_REQUIRE(rows.size() == 1 + 3 * 2 * 2 * 21u);  // starts, number types, heads of block 2, steps
  for (std::size_t i = 1; i < rows.size(); ++i) {
    BOOST_REQUIRE(rows[i].size() == 11u);
    BOOST_TEST(rows[i][2] == "2");
    BOOST_TEST(std::stod(rows[i][5]) <= std::stod(rows[i][6]));
  }
}

BOOST_FIXTURE_TEST_CASE(runs_that_have_nothing_to_analyse, Runs) {
  check_refusal({"residual", workshop / "softmax"},
                {"softmax: the mechanism is softmax; expected one that inverts a matrix: soft"});
  check_refusal({"spectrum", workshop / "simple"}, {"no block of this model has an attention map"});
  check_refusal({"spectrum", workshop / "adder", "--images", "0"}, {"--images"});
  check_refusal({"spectrum", workshop / "nowhere"}, {"contains no run"});
  check_refusal({"residual", workshop / "soft", "--iterations", "65"}, {"--iterations"});
  check_refusal({"residual", workshop / "soft", "-o", workshop / "none/x.csv"}, {"none/x.csv"});
  BOOST_TEST(!std::filesystem::exists(workshop / "simple/spectrum.csv"));
}

BOOST_AUTO_TEST_SUITE_END()
