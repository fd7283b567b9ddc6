// Linear growth of memory with the number of tokens in every mechanism; heed scaling from the command line.
#include "heed/analysis/resident_memory.h"
#include "heed/analysis/scaling.h"

#include "support/cli.h"
#include "support/command.h"
#include "heed/data/images/image.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <sstream>

using namespace heed;
using namespace heed::test;

namespace {

/// Options that are measured for a mechanism, besides those of its settings.
const std::multimap<std::string, OptionValues> settings{
    {"sima", {}},
    {"sima", {{"order", "qk_first"}}},
    {"aft", {{"rank", "8"}}},
    {"aft", {{"rank", "8"}, {"causal", "true"}}},
    {"aft", {{"variant", "simple"}}},
    {"aft", {{"rank", "8"}, {"variant", "local"}, {"window", "8"}}},
    {"aft", {{"variant", "conv"}, {"size", "5"}}},
    {"soft", {{"landmarks", "16"}}},
    {"soft", {{"landmarks", "16"}, {"normalize", "map"}}},
    {"soft", {{"kernel", "exact"}}},
    {"linear", {}},
    {"linear", {{"causal", "true"}}},
    {"linformer", {{"length", "16"}}},
    {"nystrom", {{"landmarks", "16"}}},
    {"cosformer", {{"reweight", "1d"}}},
    {"cosformer", {{"reweight", "2d"}}},
    {"window", {{"window", "8"}}},
    {"window", {{"window", "8"}, {"dims", "2"}, {"shift", "4"}}},
};

std::vector<std::vector<std::string>> table(const std::string& path) {
  std::vector<std::vector<std::string>> rows;
  std::istringstream text(read_file(path));
  for (std::string line; std::getline(text, line);) {
    std::istringstream cells(line + ",");
    std::vector<std::string>& row = rows.emplace_back();
    for (std::string cell; std::getline(cells, cell, ',');) row.push_back(cell);
  }
  return rows;
}

/// Runs of heed scaling with 8 channels, with output to `file` in a temporary directory.
struct Runs {
  TemporaryDirectory directory;
  std::string file = directory / "scaling.csv";

  std::vector<std::string> command(std::vector<std::string> more) const {
    std::vector<std::string> arguments{"scaling", "--dim", "8", "--seconds", "0", "-o", file};
    more.insert(more.begin(), arguments.begin(), arguments.end());
    return more;
  }
  void refuse(const std::vector<std::string>& more, const std::vector<std::string>& pieces) const {
    check_refusal(command(more), pieces);
    BOOST_TEST(!std::filesystem::exists(file));
  }
};

Index parameters_at(const Mechanism& mechanism, Index tokens) {
  Index sum = 0;
  for (const ParameterSpec& spec : mechanism.parameters(mechanism.layout(32, 2).among(tokens, {})))
    sum += spec.shape.elements();
  return sum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(scaling)

// Twice the tokens take twice the memory, up to the rounding to whole blocks of the tape. A single head's map would
// take 4 MB at 1024 tokens, several times the rest. Mechanisms with parameters for every pair of tokens are skipped,
// since they hold such a matrix by definition.
BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  int measured = 0;
  for (const MechanismEntry& entry : mechanisms()) {
    std::vector<OptionValues> all;
    for (const MechanismSetting& setting : entry.settings()) all.push_back(setting.options);
    for (auto [first, last] = settings.equal_range(entry.name); first != last; ++first) all.push_back(first->second);
    for (const OptionValues& options : all) {
      const auto mechanism = entry.make(options);
      if (parameters_at(*mechanism, 1024) > 3 * parameters_at(*mechanism, 512)) continue;
      const ScalingSize small = measure_scaling(*mechanism, 32, 2, 512, 0, 0);
      const ScalingSize large = measure_scaling(*mechanism, 32, 2, 1024, 0, 0);
      std::string label = entry.name;
      for (const auto& [option, value] : options) label += ":" + option + "=" + value;
      BOOST_TEST_CONTEXT(label) {
        BOOST_TEST(small.forward.bytes > 512 * 32 * 4);  // the size of out
        BOOST_TEST(small.backward.bytes >= small.forward.bytes);
        BOOST_TEST(static_cast<double>(large.forward.bytes) <= 2.3 * static_cast<double>(small.forward.bytes));
        BOOST_TEST(static_cast<double>(large.backward.bytes) <= 2.3 * static_cast<double>(small.backward.bytes));
      }
      ++measured;
    }
  }
  BOOST_TEST(measured > 30);
}

// The measurement detects a matrix [N, N] of parameters, and its gradient.
BOOST_AUTO_TEST_CASE(quadratic_memory_is_seen) {
  const auto mechanism = make_mechanism("aft", {{"param", "dense"}});
  const ScalingSize size = measure_scaling(*mechanism, 8, 1, 512, 0, 0);
  BOOST_TEST(size.forward.bytes > 4 * 512 * 512);
  BOOST_TEST(size.backward.bytes > 2 * 4 * 512 * 512);
  BOOST_TEST(scaling_bytes(*mechanism, 8, 1, 512) > 2 * 4 * 512 * 512);
  BOOST_TEST(scaling_bytes(*mechanism, 8, 1, 512) <= static_cast<double>(size.backward.bytes) + 2 * 4 * 512 * 32);
}

// The bound counts values and gradients of q, k, v, out, prepared tensors and parameters, and the saved and scratch
// memory. A mechanism with several parameters and no prepared tensors also has sums of gradients.
BOOST_AUTO_TEST_CASE(a_lower_bound_counts_each_tensor) {
  struct Bounded {
    const char* name;
    OptionValues options;
    Index tensors, copies;  ///< numbers of parameters, and of arrays as large as all parameters together
    bool prepared = false;
  };
  for (const auto& [name, options, tensors, copies, prepared] : {Bounded{"softmax", {}, 0, 0},
                                                                 {"lambda", {{"key_dim", "3"}}, 1, 2},
                                                                 {"synthesizer", {}, 4, 3},
                                                                 {"synthesizer", {{"kind", "random"}}, 1, 2, true}}) {
    const auto mechanism = make_mechanism(name, options);
    const AttentionShape shape = scaling_shape(*mechanism, 8, 2, 16);
    const AttentionMemorySize size = mechanism->memory(shape);
    const std::vector<ParameterSpec> own = mechanism->parameters(shape);
    Index elements = 0;
    for (const ParameterSpec& spec : own) elements += spec.shape.elements();
    BOOST_TEST(std::ssize(own) == tensors);
    BOOST_TEST((size.prepared > 0) == prepared);
    const Index values = 2 * 16 * (mechanism->layout(8, 2).total() + 8) + 2 * size.prepared + size.saved +
                         size.scratch + copies * elements;
    BOOST_TEST(scaling_bytes(*mechanism, 8, 2, 16) == 4.0 * static_cast<double>(values), name);
  }
}

BOOST_AUTO_TEST_CASE(quantiles_are_those_of_all_runs) {
  const ScalingPass pass{.times = {1, 2, 3, 4, 10}};
  BOOST_TEST(pass.quantile(0) == 1);
  BOOST_TEST(pass.quantile(0.25) == 2);
  BOOST_TEST(pass.quantile(0.5) == 3);
  BOOST_TEST(pass.quantile(1) == 10);
  // Quantiles between the runs are interpolated.
  const ScalingPass three{.times = {1, 2, 12}};
  BOOST_TEST(three.quantile(0.5) == 2);
  BOOST_TEST(three.quantile(0.1) == 1.2);
  BOOST_TEST(three.quantile(0.9) == 10);
  BOOST_TEST((ScalingPass{.times = {1, 3}}.quantile(0.5)) == 2);
}

// The peak resident memory during a small pass is close to the current resident memory.
BOOST_AUTO_TEST_CASE(resident_growth_is_relative, *boost::unit_test::precondition(without_sanitizer)) {
  const auto mechanism = make_mechanism("softmax", {});
  const ScalingSize whole = measure_scaling(*mechanism, 8, 2, 16, 0, 0);
  if (!whole.forward.resident || !whole.backward.resident) {
    BOOST_TEST_MESSAGE("skipped: the system does not report the peak");
    return;
  }
  const Index now = resident_bytes(), near = 16 << 20;
  const ScalingSize growth = measure_scaling(*mechanism, 8, 2, 16, 0, now);
  for (const auto pass : {&ScalingSize::forward, &ScalingSize::backward}) {
    BOOST_TEST(std::abs((whole.*pass).resident.value() - now) < near);
    BOOST_TEST(std::abs((growth.*pass).resident.value()) < near);
  }
}

BOOST_AUTO_TEST_CASE(exponents_of_powers) {
  std::vector<std::pair<double, double>> points{{64, 3 * std::pow(64, 1.7)}};
  BOOST_TEST(!fitted_exponent(points));
  for (const double x : {128.0, 1000.0, 4096.0}) points.emplace_back(x, 3 * std::pow(x, 1.7));
  BOOST_TEST(std::abs(*fitted_exponent(points) - 1.7) < 1e-12);
}

BOOST_FIXTURE_TEST_CASE(a_row_for_each_size_and_pass, Runs) {
  const std::string printed = output_of(command({"aft", "--set", "variant=conv", "--tokens", "16,32,64"}));
  check_contains(printed, {"aft:variant=conv: 8 channels, heads: 4", "exponent", file});
  const auto rows = table(file);
  BOOST_REQUIRE(rows.size() == 1 + 2 * 3u);
  BOOST_TEST(rows[0][4] == "pass");
  for (std::size_t i = 1; i < rows.size(); ++i) {
    BOOST_REQUIRE(rows[i].size() == rows[0].size());
    BOOST_TEST(rows[i][0] == "aft:variant=conv");
    BOOST_TEST(rows[i][1] == (std::array{"16", "32", "64"})[(i - 1) % 3]);
    BOOST_TEST(rows[i][4] == (i <= 3 ? "forward" : "backward"));
    BOOST_TEST(std::stoi(rows[i][5]) >= 3);
    BOOST_TEST(std::stod(rows[i][7]) <= std::stod(rows[i][6]));
    BOOST_TEST(std::stod(rows[i][6]) <= std::stod(rows[i][8]));
    BOOST_TEST(std::stol(rows[i][9]) > 0);
    BOOST_TEST(rows[i][11] == rows[i <= 3 ? 1 : 4][11]);
    BOOST_TEST(rows[i].back() == "");
  }
}

BOOST_FIXTURE_TEST_CASE(several_mechanisms_share_a_file_and_a_drawing, Runs) {
  const std::string drawing = directory / "scaling.svg";
  const std::vector<std::string> three{"softmax", "aft:variant=conv:size=3", "soft:landmarks=4"};
  std::vector<std::string> more = three;
  more.insert(more.end(), {"--tokens", "16,64,256", "--max-memory", "1", "--draw", drawing});
  const std::string printed = output_of(command(more));
  check_contains(printed, {"softmax: 8 channels", "aft:variant=conv:size=3: 8 channels", file, drawing});
  const auto rows = table(file);
  BOOST_REQUIRE(rows.size() == 1 + 3 * 2 * 3u);
  for (std::size_t i = 1; i < rows.size(); ++i) {
    BOOST_TEST(rows[i].size() == rows[0].size());
    BOOST_TEST(rows[i][0] == three[(i - 1) / 6]);
    BOOST_TEST(rows[i][1] == (std::array{"16", "64", "256"})[(i - 1) % 3]);
  }
  // A mechanism measured alone takes the same memory.
  output_of(command({"soft", "--set", "landmarks=4", "--tokens", "16,64,256"}));
  const auto alone = table(file);
  for (std::size_t i = 1; i < alone.size(); ++i) {
    BOOST_TEST(alone[i][0] == three[2]);
    BOOST_TEST(alone[i][9] == rows[12 + i][9]);
  }
  const std::string picture = read_file(drawing);
  for (const std::string& name : three) {
    std::size_t count = 0;
    for (std::size_t at = 0; (at = picture.find(">" + name + "<", at)) != std::string::npos; ++at) ++count;
    BOOST_TEST(count == 3);
  }
  for (const char* title : {">time of the forward pass; one image, 8 channels, heads: 4<",
                            ">time of the backward pass; ", ">memory of both passes; "})
    BOOST_TEST(picture.find(title) != std::string::npos, title);
  const Finished bounded =
      heed_with(command({"sima", "aft:param=dense", "--tokens", "64,256,1024", "--memory-below", "1.3"}));
  BOOST_TEST(bounded.status == 1);
  BOOST_TEST(bounded.err.find("sima") == std::string::npos);
  check_contains(bounded.err, {"aft:param=dense: memory of the backward pass grows as N^1."});
}

// With matrices [N, N] of parameters, memory grows quadratically; three matrices of 512 x 512 and the other tensors
// take more than 4 MB.
BOOST_FIXTURE_TEST_CASE(bounds_and_sizes_left_out, Runs) {
  const Finished run = heed_with(command(
      {"aft", "--set", "param=dense", "--tokens", "128,256,512", "--max-memory", "2", "--memory-below", "1.15"}));
  BOOST_TEST(run.status == 1);
  check_contains(run.err, {"heed: aft:param=dense: memory of the backward pass grows as N^1.", "less than N^1.15"});
  check_contains(run.out, {"512 tokens: needs at least 5 MB; --max-memory is 2"});
  const auto rows = table(file);
  BOOST_REQUIRE(rows.size() == 1 + 2 * 3u);
  BOOST_TEST(rows[3][1] == "512");
  BOOST_TEST(rows[3][6] == "");
  BOOST_TEST(rows[3].back() == "needs at least 5 MB; --max-memory is 2");
}

// malloc may or may not keep the memory that smaller sizes have freed, which can double the resident memory of the
// largest size. From the smallest to the largest number of tokens, a factor of 64, this changes an exponent by at most
// ln 2 / ln 64 = 0.17; measured exponents are 0.97 to 1.02.
BOOST_FIXTURE_TEST_CASE(memory_of_a_linear_mechanism_is_below_its_bound, Runs,
                        *boost::unit_test::precondition(without_sanitizer)) {
  const Finished linear = heed_with(command({"sima", "--tokens", "8192,65536,524288", "--memory-below", "1.2"}));
  BOOST_TEST(linear.status == 0, linear.err);
}

// --fit-from leaves two sizes here, so the exponent is the slope of the printed memory between them, on logarithmic
// scales.
BOOST_FIXTURE_TEST_CASE(an_exponent_is_fitted_from_a_size_on, Runs) {
  for (const auto& [from, tokens] : {std::pair("8", "1,8,512"), {"512", "8,512,1024"}, {"1", "8,512"}}) {
    output_of(command({"softmax", "--tokens", tokens, "--fit-from", from}));
    const auto rows = table(file);
    const auto column = [&](const std::string& name) { return std::ranges::find(rows[0], name) - rows[0].begin(); };
    const std::size_t bytes = static_cast<std::size_t>(column("bytes")),
                      exponent = static_cast<std::size_t>(column("memory_exponent"));
    BOOST_REQUIRE((bytes < rows[0].size() && exponent < rows[0].size()));
    const std::size_t sizes = (rows.size() - 1) / 2;
    for (std::size_t last = sizes; last < rows.size(); last += sizes) {
      const std::vector<std::string>&a = rows[last - 1], &b = rows[last];
      const double slope =
          std::log(std::stod(b[bytes]) / std::stod(a[bytes])) / std::log(std::stod(b[1]) / std::stod(a[1]));
      BOOST_TEST(std::abs(std::stod(b[exponent]) - slope) <= 5.1e-4, from);  // three decimals
    }
  }
}

BOOST_FIXTURE_TEST_CASE(what_cannot_be_measured, Runs) {
  refuse({"softmax", "--tokens", "64,32"}, {"--tokens is 64,32; expected ascending numbers"});
  refuse({"softmax", "--tokens", "0"}, {"--tokens"});
  refuse({"softmax", "--heads", "3"}, {"--dim is 8; expected a multiple of the 3 heads"});
  refuse({"sofmax"}, {"unknown mechanism 'sofmax'", "softmax"});
  refuse({"softmax", "--set", "window=3"}, {"window"});
  refuse({"soft", "--set", "landmarks=50"}, {"[soft] landmarks is 50; expected a square number"});
  refuse({"nystrom"}, {"[nystrom] landmarks is 0, ratio is 0; set exactly one of them"});
  refuse({"reformer"}, {"[reformer] rounds is not set; expected 1 to 1024"});
  refuse({"linformer", "--set", "length=-5"}, {"[linformer] length is '-5'; expected a whole number from 0"});
  refuse({"softmax", "--tokens", "16", "--time-below", "1.15"}, {"fitted to at least two sizes; found 1 of"});
  refuse({"softmax", "--set", "causal"}, {"expected OPTION=VALUE"});
  refuse({"softmax", "sima", "softmax"}, {"'softmax' is given twice"});
  refuse({"sima", "softmax:causal"}, {"'softmax:causal': expected NAME:OPTION=VALUE"});
  refuse({"sima", "softmax", "--set", "order=qk_first"}, {"[softmax] has no option 'order'"});
  BOOST_TEST(std::filesystem::is_empty(directory / ""));
  check_refusal({"scaling", "softmax", "-o", directory / "none/x.csv"}, {"none/x.csv"});
  const std::string same = directory / "same.csv";  // one file for the table and the picture
  check_refusal({"scaling", "softmax", "-o", same, "--draw", same}, {"--draw " + same, "ends in .svg"});
}

BOOST_FIXTURE_TEST_CASE(the_plot, Runs, *boost::unit_test::precondition(with_matplotlib)) {
  heed_with(command({"aft", "--set", "param=dense", "--tokens", "64,128,512", "--max-memory", "2"}));
  const std::string script = "'" + std::filesystem::absolute("experiments/tools/plot_scaling.py").string() + "' ";
  const CommandResult drawn = run_command(script + file, directory / "");
  BOOST_TEST(drawn.status == 0, drawn.errors);
  BOOST_TEST(drawn.output == (directory / "scaling.png").string() + "\n");
  BOOST_TEST(image_file_size(directory / "scaling.png").width >= 500);
  BOOST_TEST(run_command(script + file + " -o x.svg", directory / "").status == 0);
  const std::string svg = read_file(directory / "x.svg");
  for (const char* const text : {"aft:param=dense", "from 512 tokens (needs at least 5"})
    BOOST_TEST(svg.find(text) != std::string::npos, text);
  std::string header = read_file(file);
  header.resize(header.find('\n') + 1);
  write_file(directory / "empty.csv", header);
  write_file(directory / "pass.csv", header + "sima,64,64,4,sideways,3,1,1,1,1,1,1,1,1,\n");
  for (const auto& [arguments, piece] : std::vector<std::pair<std::string, std::string>>{
           {"empty.csv", "empty.csv: has no measured sizes"},
           {"pass.csv", "pass.csv:2: pass is 'sideways'; expected forward or backward"},
           {"absent.csv", "absent.csv: No such file"}}) {
    const CommandResult refused = run_command(script + arguments + " -o y.png", directory / "");
    BOOST_TEST(refused.status == 2);
    BOOST_TEST(is_line_with(refused.errors, piece), refused.errors);
  }
  BOOST_TEST(!std::filesystem::exists(directory / "y.png"));
}

BOOST_AUTO_TEST_CASE(tokens_form_a_grid_as_square_as_possible) {
  const auto softmax = make_mechanism("softmax", {});
  for (const auto& [tokens, height] : {std::pair(1, 1), {7, 1}, {12, 3}, {16, 4}, {50, 5}, {128, 8}}) {
    const AttentionShape shape = scaling_shape(*softmax, 8, 2, tokens);
    BOOST_TEST(shape.grid_height == height);
    BOOST_TEST(shape.grid_width == tokens / height);
    BOOST_TEST(shape.queries == tokens);
    BOOST_TEST(shape.heads == 2);
  }
}

BOOST_AUTO_TEST_SUITE_END()
