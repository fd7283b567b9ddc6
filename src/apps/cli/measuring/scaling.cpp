// heed scaling: how the time and memory of one attention mechanism grow with the number of tokens.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/table.h"

#include "heed/analysis/scaling.h"
#include "heed/io/file.h"
#include "heed/analysis/resident_memory.h"
#include "heed/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace heed::cli {

namespace {

struct ScalingArguments {
  std::string mechanism, output;
  std::vector<std::string> sets;
  std::vector<Index> tokens{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  Index dim = 64, heads = 4, fit_from = 1, max_megabytes = 2048;
  double seconds = 0.2, time_below = 0, memory_below = 0;

  /// "aft:variant=conv:size=5"
  std::string label() const { return sets.empty() ? mechanism : fmt::format("{}:{}", mechanism, fmt::join(sets, ":")); }
};

double in_megabytes(double bytes) { return bytes / (1 << 20); }

struct PassName {
  const char* name;
  ScalingPass ScalingSize::*pass;
};
constexpr std::array<PassName, 2> passes{{{"forward", &ScalingSize::forward}, {"backward", &ScalingSize::backward}}};

/// Exponents of the number of tokens, where two sizes or more were measured.
struct Exponents {
  std::optional<double> time, memory, resident;
};

/// The measured sizes, and the skipped ones with the reason.
struct Results {
  std::vector<ScalingSize> sizes;
  std::vector<std::pair<Index, std::string>> skipped;
  std::array<Exponents, passes.size()> exponents;
};

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

Results measure_sizes(const ScalingArguments& a, const Mechanism& mechanism) {
  Results results;
  const Index resident = resident_bytes();
  for (const Index tokens : a.tokens) {
    const double needed = in_megabytes(scaling_bytes(mechanism, a.dim, a.heads, tokens));
    if (needed > static_cast<double>(a.max_megabytes))
      results.skipped.emplace_back(tokens,
                                   fmt::format("takes {:.0f} MB or more; --max-memory is {}", needed, a.max_megabytes));
    else
      results.sizes.push_back(measure_scaling(mechanism, a.dim, a.heads, tokens, a.seconds, resident));
  }
  for (std::size_t p = 0; p < passes.size(); ++p) results.exponents[p] = fit(results.sizes, passes[p].pass, a.fit_from);
  return results;
}

std::string to_csv(const ScalingArguments& a, const Results& results) {
  Table table;
  table.data({"mechanism", "tokens", "dim", "heads", "pass", "runs"});
  table.data({"seconds", "seconds_10", "seconds_90"}, significant(4)).data({"bytes", "resident_bytes"});
  table.data({"time_exponent", "memory_exponent", "resident_exponent"}, fixed(3)).data({"skipped"});
  for (std::size_t p = 0; p < passes.size(); ++p) {
    for (const ScalingSize& size : results.sizes) {
      const ScalingPass& pass = size.*passes[p].pass;
      const Exponents& e = results.exponents[p];
      table.add({a.label(), size.tokens, a.dim, a.heads, passes[p].name, pass.times.size(), pass.quantile(0.5),
                 pass.quantile(0.1), pass.quantile(0.9), pass.bytes, pass.resident, e.time, e.memory, e.resident});
    }
    for (const auto& [tokens, why] : results.skipped)
      table.add({a.label(), tokens, a.dim, a.heads, passes[p].name, 0, {}, {}, {}, {}, {}, {}, {}, {}, why});
  }
  return table.csv();
}

void print(const ScalingArguments& a, const Results& results) {
  std::cout << fmt::format("{}: {} channels, heads: {}; one image, one thread\n\n", a.label(), a.dim, a.heads);
  const NumberFormat megabytes = [](double bytes) { return fmt::format("{:.1f}", in_megabytes(bytes)); };
  Table table;
  table.text("tokens", grouped);
  for (const PassName& pass : passes)
    table.text(fmt::format("{}, ms", pass.name), fixed(3)).text("MB", megabytes).text("resident MB", megabytes);
  for (const ScalingSize& size : results.sizes) {
    std::vector<Json> row{size.tokens};
    for (const PassName& which : passes) {
      const ScalingPass& pass = size.*which.pass;
      row.insert(row.end(), {pass.quantile(0.5) * 1e3, pass.bytes, pass.resident});
    }
    table.add(std::move(row));
  }
  std::vector<Json> last{"exponent"};
  for (const Exponents& e : results.exponents)
    for (const std::optional<double>& exponent : {e.time, e.memory, e.resident})
      last.push_back(exponent ? Json(fixed(2)(*exponent)) : Json());
  table.add(std::move(last));
  table.print(std::cout);
  if (a.fit_from > 1) std::cout << fmt::format("exponents are fitted from {} tokens on\n", a.fit_from);
  for (const auto& [tokens, why] : results.skipped) std::cout << fmt::format("{} tokens: {}\n", grouped(tokens), why);
}

/// Returns true if all exponents are below their bounds, and names the others on stderr; a bound of 0 is none.
bool within_bounds(const ScalingArguments& a, const Results& results) {
  bool all = true;
  const auto check = [&](const char* pass, const char* what, const std::optional<double>& exponent, double bound) {
    if (bound == 0 || !exponent || *exponent < bound) return;
    std::cerr << fmt::format("heed: {}: {} of the {} pass grows as N^{:.3f}; expected less than N^{}\n", a.label(),
                             what, pass, *exponent, bound);
    all = false;
  };
  for (std::size_t p = 0; p < passes.size(); ++p) {
    const Exponents& e = results.exponents[p];
    check(passes[p].name, "time", e.time, a.time_below);
    check(passes[p].name, "memory", e.memory, a.memory_below);
    check(passes[p].name, "resident memory", e.resident, a.memory_below);
  }
  return all;
}

int scaling_command(const ScalingArguments& a) {
  const std::unique_ptr<Mechanism> mechanism = make_mechanism(a.mechanism, parse_options(a.sets));
  require(a.dim % a.heads == 0, "scaling: --dim is {}; expected a multiple of the {} heads", a.dim, a.heads);
  require(std::ranges::adjacent_find(a.tokens, std::greater_equal<>()) == a.tokens.end(),
          "scaling: --tokens is {}; expected numbers that increase", fmt::join(a.tokens, ","));
  require(std::isfinite(a.time_below) && std::isfinite(a.memory_below),
          "scaling: --time-below is {}, --memory-below {}; expected finite numbers", a.time_below, a.memory_below);
  for (const Index tokens : a.tokens) mechanism->check(scaling_shape(*mechanism, a.dim, a.heads, tokens));
  const auto fitted = std::ranges::count_if(a.tokens, [&](Index tokens) {
    return tokens >= a.fit_from &&
           in_megabytes(scaling_bytes(*mechanism, a.dim, a.heads, tokens)) <= static_cast<double>(a.max_megabytes);
  });
  require((a.time_below == 0 && a.memory_below == 0) || fitted >= 2,
          "scaling: a bound needs an exponent, but of the sizes from {} on that --max-memory allows there are {}; "
          "expected two or more",
          a.fit_from, fitted);
  if (!a.output.empty()) AtomicFile(a.output);  // fails now where nothing can be written
  const Results results = measure_sizes(a, *mechanism);
  print(a, results);
  if (!a.output.empty()) {
    write_file(a.output, to_csv(a, results));
    std::cout << printable(a.output) << "\n";
  }
  return within_bounds(a, results) ? ok : check_failed;
}

constexpr const char* scaling_help =
    "Attention alone is measured, without projections, on random numbers: the forward pass as in inference, and the "
    "backward pass after one that recorded. Times are medians of processor time. Memory is what the tape holds at the "
    "end of the pass, the mechanism's scratch memory, its own tensors and their gradients; resident is by how much the "
    "peak of the process's resident memory has grown since the start, operands included. Exponents b of a N^b are "
    "fitted by least squares of logarithms; exit status 1 if one is not below --time-below or --memory-below. Sizes "
    "that would take more than --max-memory are skipped, and the file's column `skipped` says so. "
    "experiments/tools/plot_scaling.py draws it.";

}  // namespace

void add_scaling(Command program) {
  static ScalingArguments a;
  constexpr Range sizes{1, 1 << 20};
  Command command = program.command("scaling", "Measure time and memory of attention as tokens become more");
  command.option("NAME", &a.mechanism, "mechanism, as `heed list` names it",
                 {.required = true, .offered = mechanism_names()});
  add_sets(command, a.sets, "an option of the mechanism; repeatable");
  command.option("--tokens", &a.tokens, "sizes, ascending; default: 64,128,256 and so on to 16384",
                 {.value = "N,...", .range = sizes, .commas = true});
  command.option("--dim", &a.dim, "channels of all heads; default: 64", {.range = {{1, 65'536}}});
  command.option("--heads", &a.heads, "default: 4", {.range = {{1, 65'536}}});
  command.option("--seconds", &a.seconds, "how long to measure each pass at each size; default: 0.2",
                 {.range = {{0, 86'400}}});
  command.option("--max-memory", &a.max_megabytes, "default: 2048", {.value = "MB", .range = sizes});
  command.option("--fit-from", &a.fit_from, "fit exponents to sizes from N tokens on; default: to all",
                 {.value = "N", .range = sizes});
  command.option("--time-below", &a.time_below, "bound for exponents of time", {.positive = true});
  command.option("--memory-below", &a.memory_below, "bound for exponents of memory", {.positive = true});
  command.option("-o,--output", &a.output, "also write the results to a file", {.value = "FILE.csv"});
  command.footer(scaling_help);
  command.action([] { return scaling_command(a); });
}

}  // namespace heed::cli
