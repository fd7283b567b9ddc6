// heed bench --compare: what has become faster or slower since an earlier measurement, or which kernels reach less of
// their limits than a list of shares says.
#include "bench_forms.h"
#include "src/apps/cli/shared/cost_table.h"

#include "heed/io/file.h"
#include "heed/base/suggest.h"
#include "heed/train/runs/run.h"

#include <fmt/format.h>

#include <cmath>
#include <iostream>

namespace heed::cli {

namespace {

using bench::Measurement;

/// The measurements of a result; throws Error if it is not one.
std::vector<Measurement> measurements_in(const Json& result) {
  if (result.contains("img_s")) {
    const auto number = [&](const char* key) { return result.at(key).number(); };
    return {{fmt::format("{} {}, batch {}", result.at("model").text(), result.at("mode").text(),
                         result.at("batch").integer()),
             result.at("unit").text(), number("img_s"), number("low_img_s"), number("high_img_s")}};
  }
  std::vector<Measurement> measurements;
  for (const char* section : {"limits", "kernels", "models"})
    for (const Json& entry : result.at(section).items())
      measurements.push_back({entry.at("name").text(), entry.at("unit").text(), entry.at("rate").number(),
                              entry.at("low").number(), entry.at("high").number()});
  return measurements;
}

/// A kernel that reaches less than this part of its old share has lost something.
constexpr double kept_share = 0.9;

constexpr const char* change_words[] = {"slower", "", "faster"};

}  // namespace

double share_of(const bench::KernelResult& kernel) {
  return kernel.fraction * kernel.measured.high / kernel.measured.rate;
}

Json shares_json(const SuiteResult& result) {
  const Json environment = Json::parse(environment_json());
  Json json = Json::object({{"cpu", environment.at("cpu")}, {"shares", Json::list()}});
  for (const bench::KernelResult& kernel : result.kernels)
    json["shares"].push_back(Json::object({{"name", kernel.measured.name},
                                           {"limit", name_of(kernel.limit)},
                                           {"share", std::round(1000 * share_of(kernel)) / 1000}}));
  return json;
}

Baseline::Baseline(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string text = read_file(path_);
  try {
    const Json json = Json::parse(text);
    holds_shares_ = json.contains("shares");
    if (holds_shares_) {
      for (const Json& entry : json.at("shares").items())
        shares_.emplace_back(entry.at("name").text(), entry.at("share").number());
      cpu_ = json.at("cpu").text();
    } else {
      before_ = measurements_in(json);
    }
  } catch (const Error&) {
    fail("{}: not a measurement; expected what heed bench --json has printed", path_);
  }
  for (const Measurement& m : before_)
    require(m.low > 0 && m.low <= m.rate && m.rate <= m.high,
            "{}: {} has the rate {} between {} and {}; expected 0 < low <= rate <= high", path_, in_quotes(m.name),
            m.rate, m.low, m.high);
  for (const auto& [name, share] : shares_)
    require(share > 0, "{}: {} has a share of {}; expected more than 0", path_, in_quotes(name), share);
}

std::optional<double> Baseline::share_of(const std::string& kernel) const {
  for (const auto& [name, share] : shares_)
    if (name == kernel) return share;
  return {};
}

bool Baseline::lost(const bench::KernelResult& kernel) const {
  const std::optional<double> old = share_of(kernel.measured.name);
  return old && cli::share_of(kernel) < kept_share * *old;
}

std::vector<std::string> Baseline::warnings(const SuiteResult& result) const {
  std::vector<std::string> lines;
  if (const std::string cpu = Json::parse(environment_json()).at("cpu").text(); holds_shares_ && cpu != cpu_)
    lines.push_back(
        fmt::format("{} is of another processor, {}, not {}: shares differ between processors", path_, cpu_, cpu));
  for (const bench::KernelResult& kernel : result.kernels)
    if (lost(kernel))
      lines.push_back(fmt::format("{}: {:.0f} % of the limit ({}), {:.0f} % in {}", kernel.measured.name,
                                  100 * cli::share_of(kernel), name_of(kernel.limit),
                                  100 * *share_of(kernel.measured.name), path_));
  return lines;
}

Json Baseline::changed_shares(const Json& result) const {
  Json list = Json::list();
  if (!result.contains("kernels")) return list;
  for (const Json& entry : result.at("kernels").items()) {
    const std::optional<double> old = share_of(entry.at("name").text());
    if (!old) continue;
    const double now = entry.at("fraction").number() * entry.at("high").number() / entry.at("rate").number();
    const int change = now < kept_share * *old ? 0 : kept_share * now > *old ? 2 : 1;
    list.push_back(Json::object({{"name", entry.at("name")},
                                 {"unit", "% of limit"},
                                 {"old", 100 * *old},
                                 {"new", 100 * now},
                                 {"ratio", now / *old},
                                 {"change", change_words[change]}}));
  }
  return list;
}

Json Baseline::changes(const Json& result) const {
  Json list = holds_shares_ ? changed_shares(result) : changed_rates(result);
  require(!list.items().empty(),
          "{}: has nothing of what was measured now; expected the same model, mode and batch, or kernels", path_);
  return list;
}

Json Baseline::changed_rates(const Json& result) const {
  Json list = Json::list();
  for (const Measurement& now : measurements_in(result))
    for (const Measurement& old : before_)
      if (old.name == now.name && old.unit == now.unit) {
        const int change = now.low > old.high ? 2 : now.high < old.low ? 0 : 1;
        list.push_back(Json::object({{"name", now.name},
                                     {"unit", now.unit},
                                     {"old", old.rate},
                                     {"new", now.rate},
                                     {"ratio", now.rate / old.rate},
                                     {"change", change_words[change]}}));
      }
  return list;
}

void Baseline::print_json(Json result) const {
  if (!path_.empty()) result["compare"] = changes(result);
  std::cout << result.dump() << "\n";
}

void Baseline::print(const Json& result) const {
  if (path_.empty()) return;
  std::vector<std::vector<std::string>> table{{"compared with " + path_, "", "old", "new", "ratio", ""}};
  const Json list = changes(result);
  for (const Json& change : list.items())
    table.push_back({change.at("name").text(), change.at("unit").text(),
                     fmt::format("{:.1f}", change.at("old").number()), fmt::format("{:.1f}", change.at("new").number()),
                     fmt::format("{:.2f}", change.at("ratio").number()), change.at("change").text()});
  std::cout << "\n";
  print_table(std::cout, table);
  std::cout << (holds_shares_ ? "\nfaster, slower: more than a tenth, in the fastest tenth of calls\n"
                              : "\nfaster, slower: where the two spreads do not overlap\n");
}

}  // namespace heed::cli
