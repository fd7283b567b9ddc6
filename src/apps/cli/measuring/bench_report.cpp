// What `heed bench` prints of the suite.
#include "bench_forms.h"
#include "src/apps/cli/shared/cost_table.h"

#include "heed/train/runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>

namespace heed::cli {

namespace {

using Table = std::vector<std::vector<std::string>>;

std::string percent(double fraction) { return fmt::format("{:.0f} %", 100 * fraction); }

/// Three digits.
std::string digits(double value) { return fmt::format("{:.{}f}", value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0); }

std::string spread(const bench::Measurement& m) { return fmt::format("{} to {}", digits(m.low), digits(m.high)); }

void print_limits(const std::vector<bench::Limit>& limits) {
  Table table{{"limit", "rate", "", "median", "measured as"}};
  for (const bench::Limit& limit : limits)
    table.push_back(
        {limit.measured.name, digits(limit.measured.rate), limit.measured.unit, digits(limit.measured.low), limit.how});
  print_table(std::cout, table);
  std::cout
      << "\nlargest of short repetitions; gemm counts multiplications and additions, l1 and clamp terms of a sum\n";
}

void print_kernels(const std::vector<bench::KernelResult>& kernels) {
  Table table{{"kernel, one thread", "size", "us", "rate", "", "10 % to 90 %", "limit", "of it"}};
  for (const bench::KernelResult& k : kernels)
    table.push_back({k.measured.name, k.size, digits(k.microseconds), digits(k.measured.rate), k.measured.unit,
                     spread(k.measured), name_of(k.limit), percent(k.fraction)});
  std::cout << "\n";
  print_table(std::cout, table);
  std::cout << "\nmedians; limit: what would take longest, were everything used at its limit\n";
  for (const std::string& line : bench::shortfalls(kernels)) std::cout << line << "\n";
}

/// "linear 20.1, gelu 3.2, ...": the operations that take longest.
std::string longest(const Json& profile) {
  std::vector<std::pair<double, std::string>> operations;
  for (const auto& [name, ms] : profile.entries())
    operations.emplace_back(-ms.at("forward").number() - ms.at("backward").number(), name);
  std::sort(operations.begin(), operations.end());
  std::string text;
  for (std::size_t i = 0; i < std::min<std::size_t>(operations.size(), 4); ++i)
    text += fmt::format("{}{} {}", i == 0 ? "" : ", ", operations[i].second, digits(-operations[i].first));
  return text;
}

void print_models(const std::vector<ModelResult>& models) {
  Table table{{"model", "batch", "rate", "", "10 % to 90 %", "limit", "of it", "peak MB", "ms by operation"}};
  for (const ModelResult& m : models)
    table.push_back({m.measured.name, std::to_string(m.batch), digits(m.measured.rate), m.measured.unit,
                     spread(m.measured), m.limit, percent(m.fraction), digits(m.megabytes), longest(m.profile)});
  std::cout << "\n";
  print_table(std::cout, table);
  std::cout
      << "\nmedians; limit: 2 operations per multiply-add in inference, 6 in training; a distance takes an l1 term, "
         "in training also a clamp and a multiply-add\n"
         "all tokens are counted; after its attention the last block computes only what the head reads, so a share may "
         "be 6 % (deit-tiny-p4) or 16 % (vit-micro) larger than that of the work done\n"
         "ms by operation: of a training step, all threads added up; the longest four, --json has all\n";
}

Json entry(const bench::Measurement& m) {
  return Json::object({{"name", m.name}, {"unit", m.unit}, {"rate", m.rate}, {"low", m.low}, {"high", m.high}});
}

}  // namespace

void print_suite(const SuiteResult& result) {
  std::cout << environment_line() << "\n\n";
  print_limits(result.limits);
  if (!result.kernels.empty()) print_kernels(result.kernels);
  if (!result.models.empty()) print_models(result.models);
  if (result.times)
    std::cout << fmt::format("\ntimes of {} kinds of operations: --json has them, heed cost --time takes them\n",
                             result.times->forward.size());
}

Json suite_json(const SuiteResult& result) {
  Json json = Json::parse(environment_json());
  json["warnings"] = result.warnings;
  for (const char* const table : {"limits", "kernels", "models"}) json[table] = Json::list();
  for (const bench::Limit& limit : result.limits) {
    Json& e = json["limits"].push_back(entry(limit.measured));
    e["threads"] = limit.threads;
    e["measured_as"] = limit.how;
  }
  for (const bench::KernelResult& k : result.kernels) {
    Json& e = json["kernels"].push_back(entry(k.measured));
    e["size"] = k.size;
    e["us"] = k.microseconds;
    e["limit"] = name_of(k.limit);
    e["fraction"] = k.fraction;
  }
  json["shortfalls"] = bench::shortfalls(result.kernels);
  for (const ModelResult& m : result.models) {
    Json& e = json["models"].push_back(entry(m.measured));
    e["model"] = m.model;
    e["mode"] = m.mode;
    e["batch"] = m.batch;
    e["limit"] = m.limit;
    e["fraction"] = m.fraction;
    e["peak_mb"] = m.megabytes;
    e["profile_ms"] = m.profile;
  }
  if (result.times) json["times"] = result.times->json();
  return json;
}

}  // namespace heed::cli
