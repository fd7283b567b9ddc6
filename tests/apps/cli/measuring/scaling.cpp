// heed scaling: the table, the file and the drawing of several mechanisms agree; bounds and limits.
#include "support/cli.h"
#include "support/lines.h"

#include "heed/analysis/scaling.h"

#include <fmt/format.h>

#include <cmath>
#include <map>
#include <regex>

using namespace heed;
using namespace heed::test;

namespace {

using Cells = std::vector<std::string>;

Cells cut_at(const std::string& line, const char* separator) {
  const std::regex gap(separator);
  return Cells(std::sregex_token_iterator(line.begin(), line.end(), gap, -1), {});
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cli_scaling)

// Tolerances: the decimals of the table, four digits in the file, and one decimal of a height in the drawing.
BOOST_AUTO_TEST_CASE(table_file_and_drawing_agree) {
  const TemporaryDirectory directory;
  const std::string file = directory / "x.csv", drawing = directory / "x.svg";
  const std::pair<std::string, OptionValues> mechanisms[] = {{"softmax", {}}, {"aft", {{"param", "dense"}}}};
  const double sizes[] = {16, 64, 256};
  const Cells printed =
      lines_of(output_of({"scaling", "softmax", "aft:param=dense", "--dim", "16", "--heads", "2", "--tokens",
                          "16,64,256", "--fit-from", "64", "--seconds", "0", "-o", file, "--draw", drawing}));
  const Cells lines = lines_of(read_file(file));
  BOOST_REQUIRE(lines.size() == 13u);
  std::vector<double> drawn[3];
  for (std::size_t m = 0; m < 2; ++m) {
    const std::string label = m == 0 ? "softmax" : "aft:param=dense";
    const auto at = std::ranges::find(printed, label + ": 16 channels, heads: 2; one image, one thread");
    const auto row = [&](std::size_t i) { return cut_at(at[static_cast<std::ptrdiff_t>(3 + i)], "  +"); };
    const std::unique_ptr<Mechanism> alone = make_mechanism(mechanisms[m].first, mechanisms[m].second);
    for (std::size_t p = 0; p < 2; ++p) {
      const Cells* last = nullptr;
      std::vector<Cells> cells;
      for (std::size_t i = 0; i < 3; ++i) {
        const std::string& line = lines[1 + 6 * m + 3 * p + i];
        BOOST_TEST(line.starts_with(fmt::format("{},{},16,2,{},", label, sizes[i], p == 0 ? "forward" : "backward")));
        last = &cells.emplace_back(cut_at(line, ","));
        const double seconds = std::stod(last->at(6)), bytes = std::stod(last->at(9));
        const ScalingSize size = measure_scaling(*alone, 16, 2, static_cast<Index>(sizes[i]), 0, 0);
        BOOST_TEST(bytes == static_cast<double>((p == 0 ? size.forward : size.backward).bytes));
        BOOST_TEST(std::abs(std::stod(row(i).at(3 * p + 1)) - 1e3 * seconds) <= 5.1e-4 + 5.1e-4 * 1e3 * seconds);
        BOOST_TEST(std::abs(std::stod(row(i).at(3 * p + 2)) - bytes / 1048576) <= 0.0501);
        drawn[p].push_back(seconds);
        if (p == 1) drawn[2].push_back(bytes);
      }
      // The slopes of time and of memory from 64 to 256 tokens.
      for (const std::size_t k : {0, 1}) {
        const double slope =
            std::log(std::stod(cells[2].at(6 + 3 * k)) / std::stod(cells[1].at(6 + 3 * k))) / std::log(4);
        BOOST_TEST(std::abs(std::stod(last->at(11 + k)) - slope) <= 1.3e-3);
        BOOST_TEST(std::abs(std::stod(row(3).at(3 * p + 1 + k)) - slope) <= 6.3e-3);
      }
    }
  }
  // Heights are linear in the values' logarithms, from the lowest to the highest point of both lines.
  const std::string picture = read_file(drawing);
  static const std::regex point("(?: M| L)([0-9.]+) ([0-9.]+)");
  std::sregex_iterator next(picture.begin(), picture.end(), point);
  for (const std::vector<double>& values : drawn) {
    std::vector<double> heights;
    for (std::size_t i = 0; i < 6 && next != std::sregex_iterator(); ++i, ++next)
      heights.push_back(std::stod((*next)[2]));
    BOOST_REQUIRE(heights.size() == 6u);
    const auto [low, high] = std::ranges::minmax(values);
    const auto [top, bottom] = std::ranges::minmax(heights);
    for (std::size_t i = 0; i < 6; ++i)
      BOOST_TEST(std::abs(bottom - heights[i] - (bottom - top) * std::log(values[i] / low) / std::log(high / low)) <
                 0.5);
  }
}

BOOST_AUTO_TEST_CASE(quantiles_of_the_times) {
  const TemporaryDirectory directory;
  const std::string file = directory / "x.csv";
  output_of({"scaling", "softmax", "--dim", "8", "--heads", "2", "--tokens", "16", "--seconds", "0.02", "-o", file});
  const Cells lines = lines_of(read_file(file));
  BOOST_REQUIRE(lines.size() == 3u);
  for (std::size_t i = 1; i < 3; ++i) {
    const Cells cells = cut_at(lines[i], ",");
    BOOST_TEST(std::stoi(cells.at(5)) >= 5);
    const double median = std::stod(cells.at(6)), low = std::stod(cells.at(7)), high = std::stod(cells.at(8));
    BOOST_TEST((low <= median && median <= high), lines[i]);
  }
}

// A bound applies to both passes and to the quantity in its name; a violation by any mechanism sets the status.
BOOST_AUTO_TEST_CASE(bounds_by_option) {
  const struct {
    const char* words;
    int status;
    Cells said;
    const char* unsaid;
  } runs[] = {
      {"softmax --tokens 64,512 --time-below 0.001", 1, {"time of the forward", "time of the backward"}, "memory"},
      {"softmax --tokens 64,512 --memory-below 0.001",
       1,
       {" memory of the forward", " memory of the backward"},
       "time"},
      {"aft:param=dense sima --tokens 64,1024 --memory-below 1.3", 1, {"memory of the backward"}, "sima"},
      {"softmax --tokens 16,64,512 --fit-from 64 --time-below 9", 0, {}, "heed"},
      {"softmax --tokens 16,64,512 --fit-from 65 --time-below 9", 2, {"found 1 of at least 65"}, "grows"}};
  for (const auto& run : runs) {
    const Finished finished = heed_with(cut_at(std::string("scaling --dim 8 --seconds 0 ") + run.words, " "));
    BOOST_TEST(finished.status == run.status, finished.err);
    check_contains(finished.err, run.said);
    BOOST_TEST(finished.err.find(run.unsaid) == std::string::npos, finished.err);
  }
}

BOOST_AUTO_TEST_CASE(options_without_effect_are_reported) {
  for (const auto& [mechanism, warning] :
       {std::pair("aft:variant=simple:rank=8",
                  "heed: warning: aft:variant=simple:rank=8: attention.rank = 8 has no effect; it needs variant = full "
                  "or local\n"),
        {"aft:rank=8", ""}})
    BOOST_TEST(heed_with({"scaling", mechanism, "--tokens", "4,8", "--seconds", "0"}).err == warning);
}

// Each mechanism has its own largest size; a drawing needs at least one size of at least one mechanism.
BOOST_AUTO_TEST_CASE(sizes_left_out_by_mechanism) {
  const TemporaryDirectory directory;
  const std::string file = directory / "x.csv", drawing = directory / "x.svg";
  const Cells words = {"scaling", "aft:param=dense", "sima", "--dim", "8", "--heads", "2", "--seconds", "0"};
  const auto with = [&](Cells more) {
    more.insert(more.begin(), words.begin(), words.end());
    return more;
  };
  output_of(with({"--tokens", "64,1024", "--max-memory", "2", "-o", file, "--draw", drawing}));
  const Cells lines = lines_of(read_file(file));
  BOOST_TEST_REQUIRE(lines.size() == 9u);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const Cells cells = cut_at(lines[i], ",");
    const bool left_out = cells[0] == "aft:param=dense" && cells[1] == "1024";
    BOOST_TEST((cells[5] == "0") == left_out, lines[i]);
    BOOST_TEST((lines[i].find(",needs at least ") != std::string::npos) == left_out, lines[i]);
  }
  BOOST_TEST(read_file(drawing).find("aft:param=dense") != std::string::npos);
  std::filesystem::remove(drawing);
  const Finished nothing = heed_with(with({"--tokens", "32768", "--max-memory", "1", "--draw", drawing}));
  BOOST_TEST(nothing.status == 2);
  BOOST_TEST(nothing.err ==
             fmt::format("heed: scaling: --draw {}: --max-memory allows no size; nothing to draw\n", drawing));
  BOOST_TEST(!std::filesystem::exists(drawing));
}

BOOST_AUTO_TEST_SUITE_END()
