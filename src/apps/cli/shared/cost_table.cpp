#include "cost_table.h"

#include "heed/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace heed::cli {

namespace {

/// Four digits and one of the prefixes, each of which stands for a thousand of the one before.
std::string with_prefix(double value, std::span<const char* const> prefixes) {
  std::size_t prefix = 0;
  // 999.95 would be written as 1000.
  while (std::abs(value) >= 999.95 && prefix + 1 < prefixes.size()) value /= 1000, ++prefix;
  if (prefix == 0 && value == std::floor(value)) return fmt::format("{:.0f}{}", value, prefixes[0]);
  const int decimals = std::abs(value) < 9.9995 ? 3 : std::abs(value) < 99.995 ? 2 : 1;
  return fmt::format("{:.{}f}{}", value, decimals, prefixes[prefix]);
}

}  // namespace

std::string si(double value) {
  constexpr const char* prefixes[] = {"", " k", " M", " G", " T", " P", " E"};
  return with_prefix(value, prefixes);
}

std::string joules(double pj) {
  constexpr const char* units[] = {" pJ", " nJ", " uJ", " mJ", " J", " kJ", " MJ"};
  return with_prefix(pj, units);
}

std::string grouped(Index value) {
  std::string text = std::to_string(value);
  for (Index place = static_cast<Index>(text.size()) - 3; place > 0; place -= 3)
    text.insert(static_cast<std::size_t>(place), 1, ',');
  return text;
}

void print_table(std::ostream& out, std::vector<std::vector<std::string>> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) {
      row[i] = printable(row[i]);
      if (i == widths.size()) widths.push_back(0);
      widths[i] = std::max(widths[i], row[i].size());
    }
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      out << (i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]));
    out << "\n";
  }
}

std::vector<CountKind> kinds_of(const std::vector<CostRow>& rows) {
  std::vector<CountKind> kinds;
  for (const CountKind& kind : count_kinds)
    if (kinds.size() < 2 ||
        std::any_of(rows.begin(), rows.end(), [&](const CostRow& row) { return row.counts.*kind.member > 0; }))
      kinds.push_back(kind);
  return kinds;
}

std::string energy_note(const EnergyTable& table, const std::vector<CountKind>& kinds) {
  std::string prices, free;
  for (const CountKind& kind : kinds) {
    const auto figure = std::find_if(table.operations.begin(), table.operations.end(),
                                     [&](const EnergyFigure& f) { return f.of == kind.name; });
    if (figure == table.operations.end())
      free += fmt::format("{}{}", free.empty() ? "" : ", ", kind.name);
    else
      prices += fmt::format("{}{} {} pJ", prices.empty() ? "" : ", ", kind.name, figure->pj);
  }
  return fmt::format("{}: {}{}", printable(table.name), prices,
                     free.empty() ? "" : fmt::format("; {} not priced and counted as nothing", free));
}

}  // namespace heed::cli
