#include "table_rows.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

constexpr std::string_view first_columns = "kind,epoch,step";
constexpr std::size_t of_place = 3;  // index of the first value, after kind, epoch, step
constexpr std::string_view kinds[] = {"step", "train", "valid", "test"};

bool parse(const std::string& text, std::optional<double>& measured) {
  if (text.empty()) return measured.reset(), true;
  return parse_number(text, measured.emplace()) && *measured >= 0 && std::isfinite(*measured);
}

/// Parses a line into a row of the same columns; returns false if heed train does not write such lines.
bool parse(const std::string& line, TableRow& row) {
  const std::vector<std::string> fields = split(line, ',');
  if (fields.size() != row.columns.size()) return false;
  row.line = line;
  row.kind = fields[0];
  bool good = std::find(std::begin(kinds), std::end(kinds), row.kind) != std::end(kinds) &&
              parse_number(fields[1], row.epoch) && row.epoch >= 1 && parse_number(fields[2], row.step) &&
              row.step >= 0;
  row.numbers.resize(fields.size() - of_place);
  for (std::size_t i = 0; i < row.numbers.size(); ++i) good = good && parse(fields[of_place + i], row.numbers[i]);
  return good && row.number("accuracy").value_or(0) <= 1;
}

}  // namespace

std::optional<double> TableRow::number(std::string_view column) const {
  const auto found = std::find(columns.begin() + of_place, columns.end(), column);
  if (found == columns.end()) return std::nullopt;
  return numbers[static_cast<std::size_t>(found - columns.begin()) - of_place];
}

void for_each_row(const std::string& path, std::string_view header, const std::function<void(const TableRow&)>& f) {
  const std::string text = read_file(path);
  const std::vector<std::string> lines = split_lines(std::string_view(text).substr(0, text.rfind('\n') + 1));
  if (lines.empty() && header.empty()) return;  // the run has just started
  const std::string first = lines.empty() ? "" : lines[0];
  TableRow row;
  row.columns = split(first, ',');
  const bool known = header.empty() ? (first + ",").starts_with(fmt::format("{},", first_columns)) : first == header;
  require(known, "{}: begins with {}; expected {}", path, in_quotes(first), header.empty() ? first_columns : header);
  for (const std::string& name : row.columns)
    require(std::ranges::count(row.columns, name) == 1, "{}: has two columns {}; expected one", path, in_quotes(name));
  for (std::size_t i = 1; i < lines.size(); ++i) {
    require(parse(lines[i], row),
            "{}:{}: found {}; expected {}: step, train, valid or test, an epoch of at least 1, a step, and finite "
            "numbers of at least 0, accuracies up to 1, or nothing",
            path, i + 1, in_quotes(lines[i]), fmt::join(row.columns, ","));
    f(row);
  }
}

}  // namespace heed
