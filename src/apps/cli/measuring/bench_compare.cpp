// heed bench --compare: changes of speed since an earlier measurement, or kernels that reach a smaller fraction of
// their limits than recorded.
#include "bench_forms.h"
#include "src/apps/cli/shared/table.h"

#include "heed/io/file.h"
#include "heed/base/suggest.h"
#include "heed/train/runs/run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace heed::cli {

namespace {

using bench::Measurement;

/// Returns the measurements in the output of heed bench --json. Throws Error for other JSON.
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

/// Fraction of a kernel's recorded share below which the kernel counts as slower.
constexpr double kept_share = 0.9;

}  // namespace

double share_of(const bench::KernelResult& kernel) {
  return kernel.fraction * kernel.measured.high / kernel.measured.rate;
}

Json shares_json(const SuiteResult& result) {
  const Json environment = Json::parse(environment_json());
  Table shares;
  shares.data({"name", "limit", "share"});
  for (const bench::KernelResult& kernel : result.kernels)
    shares.add({kernel.measured.name, name_of(kernel.limit), std::round(1000 * share_of(kernel)) / 1000});
  return Json::object({{"cpu", environment.at("cpu")}, {"shares", shares.json()}});
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
    fail("{}: not a measurement; expected the output of heed bench --json", path_);
  }
  for (const Measurement& m : before_)
    require(m.low > 0 && m.low <= m.rate && m.rate <= m.high,
            "{}: {} has the rate {} between {} and {}; expected 0 < low <= rate <= high", path_, in_quotes(m.name),
            m.rate, m.low, m.high);
  for (const auto& [name, share] : shares_)
    require(share > 0, "{}: {} has a share of {}; expected more than 0", path_, in_quotes(name), share);
}

void Baseline::require_common(const std::vector<std::string>& names) const {
  const auto in_file = [&](const std::string& name) {
    return share_of(name).has_value() || std::ranges::find(before_, name, &Measurement::name) != before_.end();
  };
  require(path_.empty() || std::ranges::any_of(names, in_file),
          "{}: has none of the current measurements; expected the same model, mode and batch, or kernels", path_);
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
    lines.push_back(fmt::format("{} was measured on another processor, {}, not {}: shares differ between processors",
                                path_, cpu_, cpu));
  for (const bench::KernelResult& kernel : result.kernels)
    if (lost(kernel))
      lines.push_back(fmt::format("{}: {:.0f} % of the limit ({}), {:.0f} % in {}", kernel.measured.name,
                                  100 * cli::share_of(kernel), name_of(kernel.limit),
                                  100 * *share_of(kernel.measured.name), path_));
  return lines;
}

Table Baseline::changes(const Json& result) const {
  Table table;
  table.column("compared with " + path_, "name").column("", "unit").column("old", "old", fixed(1));
  table.column("new", "new", fixed(1)).column("ratio", "ratio", fixed(2)).column("", "change");
  for (const Measurement& now : measurements_in(result))
    for (const Measurement& old : before_)
      if (old.name == now.name && old.unit == now.unit) {
        const char* const change = now.low > old.high ? "faster" : now.high < old.low ? "slower" : "";
        table.add({now.name, now.unit, old.rate, now.rate, now.rate / old.rate, change});
      }
  if (holds_shares_)
    for (const Json& entry : result.at("kernels").items())
      if (const std::optional<double> old = share_of(entry.at("name").text())) {
        const double now = entry.at("fraction").number() * entry.at("high").number() / entry.at("rate").number();
        const char* const change = now < kept_share * *old ? "slower" : kept_share * now > *old ? "faster" : "";
        table.add({entry.at("name"), "% of limit", 100 * *old, 100 * now, now / *old, change});
      }
  require(!table.empty(), "{}: has the current measurements in other units", path_);
  return table;
}

void Baseline::print_json(Json result) const {
  if (!path_.empty()) result["compare"] = changes(result).json();
  std::cout << result.dump() << "\n";
}

void Baseline::print(const Json& result) const {
  if (path_.empty()) return;
  const Table table = changes(result);
  std::cout << "\n";
  table.print(std::cout);
  std::cout << (holds_shares_ ? "\nfaster, slower: by more than a tenth, in the fastest tenth of calls\n"
                              : "\nfaster, slower: if the two spreads do not overlap\n");
}

}  // namespace heed::cli
