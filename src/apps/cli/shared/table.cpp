#include "table.h"

#include "heed/base/printable.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cassert>
#include <iostream>
#include <type_traits>

namespace heed::cli {

namespace {

/// Returns a value as text: `missing` for null, numbers by the format, if given.
std::string text_of(const Json& value, const NumberFormat& format, const char* missing) {
  return value.visit([&](const auto& x) -> std::string {
    using X = std::decay_t<decltype(x)>;
    if constexpr (std::is_same_v<X, std::string>)
      return x;
    else if constexpr (std::is_same_v<X, bool>)
      return x ? "true" : "false";
    else if constexpr (std::is_arithmetic_v<X>)
      return format ? format(static_cast<double>(x)) : fmt::format("{}", x);
    else
      return missing;
  });
}

/// Escapes a cell's text for Markdown, where a bar would end the cell.
std::string markdown_text(const std::string& cell) {
  std::string text;
  for (const char c : cell) text += c == '|' || c == '\\' ? fmt::format("\\{}", c) : std::string(1, c);
  return text;
}

}  // namespace

Table& Table::column(std::string title, std::string key, NumberFormat format) {
  columns_.push_back({true, true, std::move(title), std::move(key), std::move(format), {}});
  return *this;
}

Table& Table::text(std::string title, NumberFormat format) {
  columns_.push_back({true, false, std::move(title), "", std::move(format), {}});
  return *this;
}

Table& Table::data(const std::vector<std::string>& keys, NumberFormat format) {
  for (const std::string& key : keys) columns_.push_back({false, true, "", key, {}, format});
  return *this;
}

void Table::add(std::vector<Json> row) {
  assert(row.size() <= columns_.size());
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::vector<std::string>> Table::cells() const {
  std::vector<std::vector<std::string>> cells(rows_.size() + 1);
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!columns_[i].in_text) continue;
    cells[0].push_back(columns_[i].title);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      cells[row + 1].push_back(text_of(rows_[row][i], columns_[i].format, "-"));
  }
  for (std::vector<std::string>& row : cells) std::ranges::transform(row, row.begin(), printable);
  return cells;
}

void Table::print(std::ostream& out) const {
  const std::vector<std::vector<std::string>> rows = cells();
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      out << (i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]));
    out << "\n";
  }
}

void Table::print_markdown(std::ostream& out) const {
  std::vector<std::vector<std::string>> rows = cells();
  for (std::vector<std::string>& row : rows) std::ranges::transform(row, row.begin(), markdown_text);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    out << fmt::format("| {} |\n", fmt::join(rows[row], " | "));
    if (row > 0) continue;
    for (std::size_t i = 0; i < rows[0].size(); ++i) out << "| --- ";
    out << "|\n";
  }
}

std::string Table::csv() const {
  std::string csv;
  const auto add_line = [&](const auto& field) {
    const char* separator = "";
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].in_data) csv += separator + csv_text(field(i)), separator = ",";
    csv += "\n";
  };
  add_line([&](std::size_t i) { return columns_[i].key; });
  for (const std::vector<Json>& row : rows_)
    add_line([&](std::size_t i) { return text_of(row[i], columns_[i].csv, ""); });
  return csv;
}

Json Table::json() const {
  Json list = Json::list();
  for (const std::vector<Json>& row : rows_) {
    Json& object = list.push_back(Json::object());
    for (std::size_t i = 0; i < columns_.size(); ++i)
      if (columns_[i].in_data) object[columns_[i].key] = row[i];
  }
  return list;
}

void print_profile(const Profile& profile, Index steps) {
  std::vector<Profile::Row> operations = profile.rows();
  std::ranges::sort(operations, std::greater<>(), &Profile::Row::total);
  Profile::Row sum{"all operations"};
  for (const Profile::Row& row : operations) sum.forward += row.forward, sum.backward += row.backward;
  operations.push_back(sum);
  Table table;
  table.text("operation").text("forward, ms", fixed(3)).text("backward, ms", fixed(3)).text("share", fixed(1, " %"));
  const double per_step = 1e3 / static_cast<double>(std::max<Index>(steps, 1));
  for (const Profile::Row& row : operations)
    table.add({row.operation, row.forward * per_step, row.backward * per_step,
               100 * row.total() / std::max(sum.total(), 1e-12)});
  std::cout << fmt::format("\ntime of a training step by operation, summed over threads; mean of {}\n\n",
                           counted(steps, "step"));
  table.print(std::cout);
}

std::string csv_text(const std::string& text) {
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + "\"";
}

}  // namespace heed::cli
