// heed scaling: growth of the time and memory of attention mechanisms with the number of tokens.
#include "src/apps/cli/shared/children.h"
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/output_file.h"
#include "src/apps/cli/shared/table.h"

#include "heed/analysis/resident_memory.h"
#include "heed/analysis/scaling.h"
#include "heed/base/printable.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/attention_options.h"
#include "heed/draw/line_chart.h"
#include "heed/io/file.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <iostream>

namespace heed::cli {

namespace {

struct ScalingArguments {
  std::vector<std::string> mechanisms, sets;
  std::string output, drawing;
  std::vector<Index> tokens{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  Index dim = 64, heads = 4, fit_from = 1, max_megabytes = 2048;
  double seconds = 0.2, time_below = 0, memory_below = 0;
};

double in_megabytes(double bytes) { return bytes / (1 << 20); }

struct PassName {
  const char* name;
  ScalingPass ScalingSize::*pass;
};
constexpr std::array<PassName, 2> passes{{{"forward", &ScalingSize::forward}, {"backward", &ScalingSize::backward}}};

/// Exponents of the number of tokens; none for fewer than two sizes.
struct Exponents {
  std::optional<double> time, memory, resident;
};

/// A mechanism with its measured sizes, and the skipped sizes with the reasons.
struct MeasuredMechanism {
  std::string label;  ///< "aft:variant=conv:size=5"
  std::unique_ptr<Mechanism> mechanism;
  std::vector<ScalingSize> sizes{};
  std::vector<std::pair<Index, std::string>> skipped{};
  std::array<Exponents, passes.size()> exponents{};
};

Table empty_results() {
  Table table;
  table.data({"mechanism", "tokens", "dim", "heads", "pass", "runs"});
  table.data({"seconds", "seconds_10", "seconds_90"}, significant(4)).data({"bytes", "resident_bytes"});
  table.data({"time_exponent", "memory_exponent", "resident_exponent"}, fixed(3)).data({"skipped"});
  return table;
}

/// Creates the mechanism of, for example, "aft:variant=conv" with the additional options of --set.
MeasuredMechanism mechanism_of(const std::string& text, const std::vector<std::string>& sets) {
  std::vector<std::string> words = split(text, ':');
  for (std::size_t i = 1; i < words.size(); ++i)
    require(words[i].find('=') != std::string::npos, "scaling: {}: expected NAME:OPTION=VALUE", in_quotes(text));
  words.insert(words.end(), sets.begin(), sets.end());
  const std::string label = fmt::format("{}", fmt::join(words, ":"));
  const OptionValues values = parse_options({words.begin() + 1, words.end()});
  MeasuredMechanism measured{label, make_mechanism(words[0], values)};
  for (const std::string& line : options_without_effect(words[0], values, label)) warn(line);
  return measured;
}

Exponents fit(const std::vector<ScalingSize>& sizes, ScalingPass ScalingSize::*which, Index from) {
  std::vector<std::pair<double, double>> time, memory, resident;
  for (const ScalingSize& size : sizes) {
    if (size.tokens < from) continue;
    const double tokens = static_cast<double>(size.tokens);
    const ScalingPass& pass = size.*which;
    time.emplace_back(tokens, pass.quantile(0.5));
    memory.emplace_back(tokens, static_cast<double>(pass.bytes));
    if (pass.resident && *pass.resident > 0) resident.emplace_back(tokens, static_cast<double>(*pass.resident));
  }
  return {fitted_exponent(time), fitted_exponent(memory), fitted_exponent(resident)};
}

void measure_sizes(const ScalingArguments& a, MeasuredMechanism& one) {
  const Index resident = resident_bytes();
  for (const Index tokens : a.tokens) {
    const double needed = in_megabytes(scaling_bytes(*one.mechanism, a.dim, a.heads, tokens));
    if (needed > static_cast<double>(a.max_megabytes))
      one.skipped.emplace_back(
          tokens, fmt::format("needs at least {:.0f} MB; --max-memory is {}", std::ceil(needed), a.max_megabytes));
    else
      one.sizes.push_back(measure_scaling(*one.mechanism, a.dim, a.heads, tokens, a.seconds, resident));
  }
  for (std::size_t p = 0; p < passes.size(); ++p) one.exponents[p] = fit(one.sizes, passes[p].pass, a.fit_from);
}

Table results_of(const ScalingArguments& a, const MeasuredMechanism& one) {
  Table table = empty_results();
  for (std::size_t p = 0; p < passes.size(); ++p) {
    for (const ScalingSize& size : one.sizes) {
      const ScalingPass& pass = size.*passes[p].pass;
      const Exponents& e = one.exponents[p];
      table.add({one.label, size.tokens, a.dim, a.heads, passes[p].name, pass.times.size(), pass.quantile(0.5),
                 pass.quantile(0.1), pass.quantile(0.9), pass.bytes, pass.resident, e.time, e.memory, e.resident});
    }
    for (const auto& [tokens, why] : one.skipped)
      table.add({one.label, tokens, a.dim, a.heads, passes[p].name, 0, {}, {}, {}, {}, {}, {}, {}, {}, why});
  }
  return table;
}

std::string to_csv(const Json::List& rows) {
  Table table = empty_results();
  for (const Json& row : rows) {
    std::vector<Json> values;
    for (const auto& [key, value] : row.entries()) values.push_back(value);
    table.add(std::move(values));
  }
  return table.csv();
}

/// Returns charts of the time of each pass, and of the memory of both passes, against the number of tokens, with a line
/// for each mechanism.
std::string to_svg(const ScalingArguments& a, const Json::List& rows) {
  const auto chart = [&](const std::string& title, const char* pass, const char* key, const char* unit, double one) {
    LineChart chart{fmt::format("{}; one image, {} channels, heads: {}", title, a.dim, a.heads), "tokens", unit, true};
    chart.log_y = true;
    for (const Json& row : rows) {
      if (row.at("pass").text() != pass || row.at("runs").integer() == 0) continue;
      const std::string& label = row.at("mechanism").text();
      if (chart.lines.empty() || chart.lines.back().name != label) chart.lines.push_back({label, {}});
      chart.lines.back().points.emplace_back(row.at("tokens").number(), row.at(key).number() / one);
    }
    require(!chart.lines.empty(), "scaling: --draw {}: --max-memory allows no size; nothing to draw", a.drawing);
    return chart;
  };
  return svg({chart("time of the forward pass", "forward", "seconds", "time, ms", 1e-3),
              chart("time of the backward pass", "backward", "seconds", "time, ms", 1e-3),
              chart("memory of both passes", "backward", "bytes", "memory, MB", 1 << 20)});
}

void print(const ScalingArguments& a, const MeasuredMechanism& one) {
  std::cout << fmt::format("{}: {} channels, heads: {}; one image, one thread\n\n", one.label, a.dim, a.heads);
  const NumberFormat megabytes = [](double bytes) { return fmt::format("{:.1f}", in_megabytes(bytes)); };
  Table table;
  table.text("tokens", grouped);
  for (const PassName& pass : passes)
    table.text(fmt::format("{}, ms", pass.name), fixed(3)).text("MB", megabytes).text("resident MB", megabytes);
  for (const ScalingSize& size : one.sizes) {
    std::vector<Json> row{size.tokens};
    for (const PassName& which : passes) {
      const ScalingPass& pass = size.*which.pass;
      row.insert(row.end(), {pass.quantile(0.5) * 1e3, pass.bytes, pass.resident});
    }
    table.add(std::move(row));
  }
  std::vector<Json> last{"exponent"};
  for (const Exponents& e : one.exponents)
    for (const std::optional<double>& exponent : {e.time, e.memory, e.resident})
      last.push_back(exponent ? Json(fixed(2)(*exponent)) : Json());
  table.add(std::move(last));
  table.print(std::cout);
  if (a.fit_from > 1) std::cout << fmt::format("exponents are fitted to sizes of at least {} tokens\n", a.fit_from);
  for (const auto& [tokens, why] : one.skipped) std::cout << fmt::format("{} tokens: {}\n", grouped(tokens), why);
}

/// Prints on stderr each exponent that is not below its bound, and returns true if there is none. A bound of 0 is no
/// bound.
bool within_bounds(const ScalingArguments& a, const MeasuredMechanism& one) {
  bool all = true;
  const auto check = [&](const char* pass, const char* what, const std::optional<double>& exponent, double bound) {
    if (bound == 0 || !exponent || *exponent < bound) return;
    std::cerr << fmt::format("heed: {}: {} of the {} pass grows as N^{:.3f}; expected less than N^{}\n", one.label,
                             what, pass, *exponent, bound);
    all = false;
  };
  for (std::size_t p = 0; p < passes.size(); ++p) {
    const Exponents& e = one.exponents[p];
    check(passes[p].name, "time", e.time, a.time_below);
    check(passes[p].name, "memory", e.memory, a.memory_below);
    check(passes[p].name, "resident memory", e.resident, a.memory_below);
  }
  return all;
}

/// Throws Error if the mechanism does not support a size, or if there is a bound on an exponent but fewer than two
/// sizes to fit it to.
void require_sizes(const ScalingArguments& a, const MeasuredMechanism& one) {
  const Mechanism& mechanism = *one.mechanism;
  for (const Index tokens : a.tokens) mechanism.check(scaling_shape(mechanism, a.dim, a.heads, tokens));
  const auto fitted = std::ranges::count_if(a.tokens, [&](Index tokens) {
    return tokens >= a.fit_from &&
           in_megabytes(scaling_bytes(mechanism, a.dim, a.heads, tokens)) <= static_cast<double>(a.max_megabytes);
  });
  require((a.time_below == 0 && a.memory_below == 0) || fitted >= 2,
          "scaling: a bound requires an exponent, fitted to at least two sizes; found {1} of at least {0} tokens "
          "within --max-memory",
          a.fit_from, fitted);
}

/// Measures and prints. Adds the results to `rows`; returns the exit status.
int measure_and_print(const ScalingArguments& a, MeasuredMechanism& one, Json::List& rows) {
  measure_sizes(a, one);
  print(a, one);
  std::cout << std::flush;
  const Json results = results_of(a, one).json();
  rows.insert(rows.end(), results.items().begin(), results.items().end());
  return within_bounds(a, one) ? ok : check_failed;
}

/// Measures in a child process. In this process, memory used by one mechanism would stay resident for the next.
int measure_apart(const ScalingArguments& a, MeasuredMechanism& one, Json::List& rows) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::tmpfile(), std::fclose);
  require(file != nullptr, "scaling: cannot create a temporary file: {}", std::strerror(errno));
  Children children;
  children.start([&] {
    Json::List own;
    const int status = measure_and_print(a, one, own);
    const std::string text = Json::list(own).dump();
    require(std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0,
            "scaling: cannot write a temporary file: {}", std::strerror(errno));
    return status;
  });
  int status = ok;
  while (children.any())
    for (const Children::Ended& ended : children.wait()) status = ended.status;
  if (children.interrupted()) return interrupted;
  if (status != ok && status != check_failed) return status;
  std::string text(static_cast<std::size_t>(std::ftell(file.get())), ' ');
  std::rewind(file.get());
  text.resize(std::fread(text.data(), 1, text.size(), file.get()));
  const Json results = Json::parse(text);
  rows.insert(rows.end(), results.items().begin(), results.items().end());
  return status;
}

int scaling_command(const ScalingArguments& a) {
  std::vector<MeasuredMechanism> all;
  for (const std::string& text : a.mechanisms) {
    MeasuredMechanism one = mechanism_of(text, a.sets);
    require(std::ranges::count(all, one.label, &MeasuredMechanism::label) == 0, "scaling: {} is given twice",
            in_quotes(one.label));
    all.push_back(std::move(one));
  }
  require(a.dim % a.heads == 0, "scaling: --dim is {}; expected a multiple of the {} heads", a.dim, a.heads);
  require(std::ranges::adjacent_find(a.tokens, std::greater_equal<>()) == a.tokens.end(),
          "scaling: --tokens is {}; expected ascending numbers", fmt::join(a.tokens, ","));
  require(std::isfinite(a.time_below) && std::isfinite(a.memory_below),
          "scaling: --time-below is {}, --memory-below {}; expected finite numbers", a.time_below, a.memory_below);
  for (const MeasuredMechanism& one : all) require_sizes(a, one);
  if (!a.output.empty()) require_writable({"-o", a.output}, ".csv");
  if (!a.drawing.empty()) require_writable({"--draw", a.drawing}, ".svg");
  int status = ok;
  Json::List rows;
  for (MeasuredMechanism& one : all) {
    if (&one != &all.front()) std::cout << std::endl;
    const int own = all.size() == 1 ? measure_and_print(a, one, rows) : measure_apart(a, one, rows);
    if (own != ok && own != check_failed) return own;
    status = std::max(status, own);
  }
  if (!a.output.empty()) write_file(a.output, to_csv(rows));
  if (!a.drawing.empty()) write_file(a.drawing, to_svg(a, rows));
  for (const std::string& file : {a.output, a.drawing})
    if (!file.empty()) std::cout << printable(file) << "\n";
  return status;
}

constexpr const char* scaling_help =
    "Measures attention alone, without projections, on random inputs: the forward pass as in inference, and the "
    "backward pass after a recorded forward pass. Times are medians of processor time. Memory is the sum of the tape "
    "at the end of the pass, the mechanism's scratch memory, its parameters and their gradients; resident is the "
    "growth of the process's peak resident memory since the start, including operands. Exponents b of a N^b are fitted "
    "by least squares of logarithms; the exit status is 1 if one is not below --time-below or --memory-below. Sizes "
    "that would take more than --max-memory are skipped, and marked in the file's column `skipped`. Several mechanisms "
    "are written to one file, each measured in a separate process, whose first use of the program's code adds some 2 "
    "MB of resident memory. --draw writes a page of three charts with a line for each mechanism: the time of each "
    "pass, and the memory of both. experiments/tools/plot_scaling.py draws the file.";

}  // namespace

void add_scaling(Command program) {
  static ScalingArguments a;
  constexpr Range sizes{1, 1 << 20};
  Command command =
      program.command("scaling", "Measure how attention's time and memory grow with the number of tokens");
  command.option(
      "NAME", &a.mechanisms,
      "mechanisms, as `heed list` names them, or NAME:OPTION=VALUE:... such as nystrom:landmarks=16; `heed list "
      "--settings` has one for each",
      {.required = true, .offered = mechanism_names()});
  add_sets(command, a.sets, "set an option of all these mechanisms; repeatable");
  command.option("--tokens", &a.tokens, "numbers of tokens, ascending; default: 64,128,256 and so on to 16384",
                 {.value = "N,...", .range = sizes, .commas = true});
  command.option("--dim", &a.dim, "channels, over all heads; default: 64", {.range = {{1, 65'536}}});
  command.option("--heads", &a.heads, "default: 4", {.range = {{1, 65'536}}});
  command.option("--seconds", &a.seconds, "seconds per pass and size; default: 0.2", {.range = {{0, 86'400}}});
  command.option("--max-memory", &a.max_megabytes, "skip sizes that need more memory; default: 2048",
                 {.value = "MB", .range = sizes});
  command.option("--fit-from", &a.fit_from, "fit exponents to sizes of at least N tokens; default: all sizes",
                 {.value = "N", .range = sizes});
  command.option("--time-below", &a.time_below, "upper bound of the fitted exponents of time", {.positive = true});
  command.option("--memory-below", &a.memory_below, "upper bound of the fitted exponents of memory",
                 {.positive = true});
  command.option("-o,--output", &a.output, "also write the results to a file", {.value = "FILE.csv"});
  command.option("--draw", &a.drawing, "also draw the results of all mechanisms in one page", {.value = "FILE.svg"});
  command.footer(scaling_help);
  command.action([] { return scaling_command(a); });
}

}  // namespace heed::cli
