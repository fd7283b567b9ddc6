// Output of `heed bench` for the suite.
#include "bench_forms.h"

#include "heed/train/runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace heed::cli {

namespace {

std::string spread(const bench::Measurement& m) { return fmt::format("{} to {}", digits(m.low), digits(m.high)); }

Table table_of(const std::vector<bench::Limit>& limits) {
  Table table;
  table.column("limit", "name").column("rate", "rate", digits).column("", "unit").column("median", "low", digits);
  table.data({"high", "threads"}).column("measured as", "measured_as");
  for (const bench::Limit& limit : limits) {
    const bench::Measurement& m = limit.measured;
    table.add({m.name, m.rate, m.unit, m.low, m.high, limit.threads, limit.how});
  }
  return table;
}

Table table_of(const std::vector<bench::KernelResult>& kernels) {
  Table table;
  table.column("kernel, one thread", "name").column("size", "size").column("us", "us", digits);
  table.column("rate", "rate", digits).column("", "unit").text("10 % to 90 %").data({"low", "high"});
  table.column("limit", "limit").column("share", "fraction", percent);
  for (const bench::KernelResult& k : kernels) {
    const bench::Measurement& m = k.measured;
    table.add({m.name, k.size, k.microseconds, m.rate, m.unit, spread(m), m.low, m.high, name_of(k.limit), k.fraction});
  }
  return table;
}

/// Returns the four longest operations: "linear 20.1, gelu 3.2, ...".
std::string longest(const Json& profile) {
  std::vector<std::pair<double, std::string>> operations;
  for (const auto& [name, ms] : profile.entries())
    operations.emplace_back(-ms.at("forward").number() - ms.at("backward").number(), name);
  std::ranges::sort(operations);
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(operations.size(), 4); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", operations[i].second, digits(-operations[i].first));
  return text;
}

Table table_of(const std::vector<ModelResult>& models) {
  Table table;
  table.column("model", "name").data({"model", "mode"}).column("batch", "batch").column("rate", "rate", digits);
  table.column("", "unit").text("10 % to 90 %").data({"low", "high"}).column("limit", "limit");
  table.column("share", "fraction", percent).column("peak MB", "peak_mb", digits).text("ms by operation");
  table.data({"profile_ms"});
  for (const ModelResult& r : models) {
    const bench::Measurement& m = r.measured;
    table.add({m.name, r.model, r.mode, r.batch, m.rate, m.unit, spread(m), m.low, m.high, r.limit, r.fraction,
               r.megabytes, longest(r.profile), r.profile});
  }
  return table;
}

}  // namespace

void print_suite(const SuiteResult& result) {
  std::cout << environment_line() << "\n\n";
  table_of(result.limits).print(std::cout);
  std::cout
      << "\nrates are the largest of short repetitions; gemm counts multiplications and additions, l1 and clamp count "
         "terms of a sum\n";
  if (!result.kernels.empty()) {
    std::cout << "\n";
    table_of(result.kernels).print(std::cout);
    std::cout << "\nmedians; limit: the resource whose work takes longest at its highest rate\n";
    for (const std::string& line : bench::shortfalls(result.kernels)) std::cout << line << "\n";
    for (const std::string& line : bench::long_row_shares(result.kernels)) std::cout << line << "\n";
  }
  if (!result.models.empty()) {
    std::cout << "\n";
    table_of(result.models).print(std::cout);
    std::cout
        << "\nmedians; limit: 2 operations per multiply-add in inference, 6 in training; a distance takes an l1 term, "
           "in training also a clamp and a multiply-add\n"
           "all tokens are counted, but the last block computes, after its attention, only the tokens that the head "
           "reads, so shares may be too large by 6 % (deit-tiny-p4) or 16 % (vit-micro)\n"
           "the teacher's forward passes are not counted, so the share of dino-micro in training is too small\n"
           "ms by operation: the four longest operations of a training step, summed over threads; --json has all\n";
  }
  if (result.times)
    std::cout << fmt::format("\ntimes of {} kinds of operations: --json prints them, heed cost --time reads them\n",
                             result.times->forward.size());
}

Json suite_json(const SuiteResult& result) {
  Json json = Json::parse(environment_json());
  json["warnings"] = result.warnings;
  json["limits"] = table_of(result.limits).json();
  json["kernels"] = table_of(result.kernels).json();
  json["models"] = table_of(result.models).json();
  json["shortfalls"] = bench::shortfalls(result.kernels);
  json["long_rows"] = bench::long_row_shares(result.kernels);
  if (result.times) json["times"] = result.times->json();
  return json;
}

}  // namespace heed::cli
