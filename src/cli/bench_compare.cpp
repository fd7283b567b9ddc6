// heed bench --compare: what has become faster or slower since an earlier measurement.
#include "bench_forms.h"
#include "cost_table.h"

#include "heed/io/file.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>

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

}  // namespace

Baseline::Baseline(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const std::string text = read_file(path_);
  try {
    before_ = measurements_in(Json::parse(text));
  } catch (const Error&) {
    fail("{}: not a measurement; expected what heed bench --json has printed", path_);
  }
  for (const Measurement& m : before_)
    require(m.low > 0 && m.low <= m.rate && m.rate <= m.high,
            "{}: {} has the rate {} between {} and {}; expected 0 < low <= rate <= high", path_, in_quotes(m.name),
            m.rate, m.low, m.high);
}

Json Baseline::changes(const Json& result) const {
  Json list = Json::list();
  for (const Measurement& now : measurements_in(result))
    for (const Measurement& old : before_)
      if (old.name == now.name && old.unit == now.unit) {
        const char* const change = now.low > old.high ? "faster" : now.high < old.low ? "slower" : "";
        list.push_back(Json::object({{"name", now.name},
                                     {"unit", now.unit},
                                     {"old", old.rate},
                                     {"new", now.rate},
                                     {"ratio", now.rate / old.rate},
                                     {"change", change}}));
      }
  require(!list.items().empty(),
          "{}: has nothing of what was measured now; expected the same model, mode and batch, or kernels", path_);
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
  std::cout << "\nfaster, slower: where the two spreads do not overlap\n";
}

}  // namespace heed::cli
