#include "gradebook.h"

#include "src/apps/cli/shared/table.h"

#include "heed/base/error.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <cmath>
#include <ctime>
#include <iostream>
#include <map>
#include <span>

namespace heed::cli {

namespace {

/// Returns the letters, digits and non-ASCII bytes of a text, in lower case.
std::string letters_of(const std::string& text) {
  std::string letters;
  for (const char c : text)
    if (const auto u = static_cast<unsigned char>(c); std::isalnum(u) || u > 127)
      letters += static_cast<char>(std::tolower(u));
  return letters;
}

constexpr const char* identity_columns[] = {"identity", "username", "ID number", "SIS Login ID", "SIS User ID"};
constexpr const char* number_columns[] = {"ID", "Identifier"};

std::size_t column_of(const CsvRows& rows, const std::string& name) {
  const auto at = std::ranges::find(rows.at(0), letters_of(name), letters_of);
  return static_cast<std::size_t>(at - rows[0].begin());
}

std::string number_text(const std::optional<double>& number) { return number ? fmt::format("{:g}", *number) : ""; }

double total(const ClassResults::Student& student) {
  double sum = 0;
  for (const LabRow& row : student.rows) sum += row.marks.value_or(0);
  return sum;
}

double possible(const ClassResults& results) {
  double sum = 0;
  for (const Lab& lab : results.labs) sum += lab.marks();
  return sum;
}

/// Converts a local date and time to seconds since 1970, as if every day had 24 hours.
std::time_t clock_seconds(std::tm local) { return timegm(&local); }

/// Returns the due time of a line LAB,DATE as clock_seconds(). A date without a time means the end of that day.
std::time_t due_time(const std::vector<std::string>& line) {
  require(line.size() <= 2, "--due: the line of {} has {} fields; expected two, such as {},2026-11-30 18:00", line[0],
          line.size(), line[0]);
  const std::string text = line.size() > 1 ? line[1] : "";
  std::tm date{};
  const char* end = strptime(text.c_str(), "%Y-%m-%d", &date);
  const bool day = end && *end == 0;
  if (end && !day) end = strptime(end, " %H:%M", &date);
  const std::chrono::year_month_day exists{std::chrono::year(date.tm_year + 1900),
                                           std::chrono::month(static_cast<unsigned>(date.tm_mon) + 1),
                                           std::chrono::day(static_cast<unsigned>(date.tm_mday))};
  require(end && *end == 0 && exists.ok() && date.tm_year >= 70,
          "--due: '{}' for {} is not a date; expected the form 2026-11-30 or 2026-11-30 18:00", text, line[0]);
  if (day) date.tm_mday += 1;
  return clock_seconds(date);
}

/// Returns the indices of a roster's columns with these names; names that it lacks are omitted.
std::vector<std::size_t> columns_of(const CsvRows& roster, std::span<const char* const> names) {
  std::vector<std::size_t> columns;
  for (const char* const name : names)
    if (const std::size_t column = column_of(roster, name); column < roster[0].size()) columns.push_back(column);
  return columns;
}

/// Search for students in a roster.
class RosterSearch {
 public:
  explicit RosterSearch(const CsvRows& roster)
      : roster_(roster), plain_(roster), number_columns_(columns_of(roster, number_columns)) {
    for (std::vector<std::string>& row : plain_) std::ranges::transform(row, row.begin(), letters_of);
    digit_columns_ = columns_of(roster, identity_columns);
    digit_columns_.push_back(0);
    digit_columns_.insert(digit_columns_.end(), number_columns_.begin(), number_columns_.end());
  }

  RosterRow row_of(const PlatformName& student) const {
    const std::set<std::size_t> by_number = with_number(student.numbers), by_name = with_name(letters_of(student.name));
    std::set<std::size_t> rows = by_number.empty() ? by_name : by_number;
    if (!by_number.empty() && !by_name.empty()) {
      std::erase_if(rows, [&](std::size_t row) { return !by_name.contains(row); });
      if (rows.empty())
        return {0, fmt::format("the name and the number {} match different rows", fmt::join(student.numbers, ", "))};
    }
    return rows.size() == 1 ? RosterRow{*rows.begin()} : RosterRow{0, "does not match exactly one row"};
  }

 private:
  using Row = std::vector<std::string>;

  /// Returns the indices of the rows below the header for which the predicate is true.
  static std::set<std::size_t> rows_where(const CsvRows& rows, const auto& is_it) {
    std::set<std::size_t> found;
    for (std::size_t row = 1; row < rows.size(); ++row)
      if (is_it(rows[row])) found.insert(row);
    return found;
  }
  static bool any_in(const std::vector<std::size_t>& columns, const Row& row, const auto& is_it) {
    return std::ranges::any_of(columns, [&](std::size_t column) { return column < row.size() && is_it(row[column]); });
  }

  std::set<std::size_t> with_number(const std::set<std::string>& numbers) const {
    const auto is_number = [&](const std::string& cell) {
      constexpr std::string_view moodle = "Participant ";
      return numbers.contains(cell.starts_with(moodle) ? cell.substr(moodle.size()) : cell);
    };
    return rows_where(roster_, [&](const Row& row) { return any_in(number_columns_, row, is_number); });
  }

  std::set<std::size_t> with_name(const std::string& name) const {
    if (name.empty()) return {};
    const auto is_name = [&](const std::string& cell) { return cell == name; };
    if (std::ranges::all_of(name, [](unsigned char c) { return std::isdigit(c) != 0; }))
      return rows_where(plain_, [&](const Row& row) { return any_in(digit_columns_, row, is_name); });
    std::set<std::size_t> rows = rows_where(plain_, [&](const Row& row) { return std::ranges::any_of(row, is_name); });
    if (!rows.empty()) return rows;
    // First and last names may be in separate columns.
    const auto are_name = [&](const std::string& first, const std::string& second) { return first + second == name; };
    return rows_where(plain_, [&](const Row& row) { return std::ranges::adjacent_find(row, are_name) != row.end(); });
  }

  const CsvRows& roster_;
  CsvRows plain_;                            ///< letters_of() of each cell
  std::vector<std::size_t> number_columns_;  ///< columns with students' numbers in Moodle or Canvas
  std::vector<std::size_t> digit_columns_;   ///< columns searched for names that consist of digits
};

}  // namespace

CsvRows read_csv(const std::string& text) {
  CsvRows rows{{""}};
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '"' && quoted && i + 1 < text.size() && text[i + 1] == '"')
      rows.back().back() += text[++i];
    else if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      rows.back().emplace_back();
    else if (c == '\n' && !quoted)
      rows.push_back({""});
    else if (c != '\r' || quoted)
      rows.back().back() += c;
  }
  std::erase(rows, std::vector<std::string>{""});
  return rows;
}

std::string csv_of(const CsvRows& rows) {
  std::string text;
  for (const std::vector<std::string>& row : rows)
    for (std::size_t i = 0; i < row.size(); ++i) text += csv_text(row[i]) + (i + 1 < row.size() ? "," : "\n");
  return text;
}

std::vector<RosterRow> roster_rows(const CsvRows& roster, const std::vector<PlatformName>& students) {
  std::vector<RosterRow> rows;
  std::map<std::size_t, int> count;
  const RosterSearch search(roster);
  for (const PlatformName& student : students) ++count[rows.emplace_back(search.row_of(student)).row];
  for (RosterRow& one : rows)
    if (one.row > 0 && count[one.row] > 1) one = {0, "its row is also another student's"};
  return rows;
}

std::string identity_column_names() { return fmt::format("{}", fmt::join(identity_columns, ", ")); }

std::string identity_in(const CsvRows& roster, std::size_t row) {
  for (const std::size_t column : columns_of(roster, identity_columns))
    if (column < roster[row].size() && !roster[row][column].empty()) return roster[row][column];
  return "";
}

CsvRows gradebook(const ClassResults& results) {
  CsvRows rows{{"student"}};
  for (const Lab& lab : results.labs) rows[0].push_back(lab.name);
  rows[0].insert(rows[0].end(), {"total", "of", "late_days"});
  for (const ClassResults::Student& student : results.students) {
    std::vector<std::string> row{student.name};
    int late = 0;
    for (const LabRow& lab : student.rows) row.push_back(number_text(lab.marks)), late += lab.late;
    row.insert(row.end(), {number_text(total(student)), number_text(possible(results)), std::to_string(late)});
    rows.push_back(std::move(row));
  }
  return rows;
}

CsvRows filled_roster(const ClassResults& results, CsvRows roster) {
  const std::size_t longest = std::ranges::max(roster, {}, &std::vector<std::string>::size).size();
  for (std::vector<std::string>& row : roster) row.resize(longest);  // rows may be longer than the header
  const bool worksheet = column_of(roster, "Identifier") < roster[0].size() && results.labs.size() == 1;
  for (std::size_t i = 0; i < results.labs.size(); ++i) {
    const Lab& lab = results.labs[i];
    const auto is_column = [&](const std::string& name) {
      return name == lab.name || name.starts_with(lab.name + " (") || (worksheet && name == "Grade");
    };
    const auto column = static_cast<std::size_t>(std::ranges::find_if(roster[0], is_column) - roster[0].begin());
    if (column == roster[0].size()) {
      for (std::vector<std::string>& row : roster) row.emplace_back();
      roster[0][column] = lab.name;
    }
    std::set<std::string> others;  // numbers of points that differ from the lab's
    const auto compare = [&](const std::string& points) {
      double number = 0;
      if (parse_number(points, number) && number != lab.marks()) others.insert(points);
    };
    for (std::size_t row = 1; row < roster.size(); ++row)
      if (letters_of(roster[row][0]) == "pointspossible") {
        compare(roster[row][column]);
        roster[row][column] = number_text(lab.marks());
      }
    const std::size_t most = column_of(roster, "Maximum Grade");
    for (const ClassResults::Student& student : results.students)
      if (const auto& marks = student.rows[i].marks; marks && student.roster_row > 0) {
        roster[student.roster_row][column] = number_text(marks);
        if (worksheet && most < roster[0].size()) compare(roster[student.roster_row][most]);
      }
    for (const std::string& points : others)
      std::cerr << fmt::format("heed: {}: {:g} marks, but {} points in the roster; marks are filled in as they are\n",
                               lab.name, lab.marks(), points);
  }
  return roster;
}

std::string feedback_for(const ClassResults& results, const ClassResults::Student& student) {
  std::string text = fmt::format("{}: {:g} of {:g} marks\n", student.name, total(student), possible(results));
  for (std::size_t i = 0; i < results.labs.size(); ++i) {
    const LabRow& row = student.rows[i];
    text += fmt::format("\n----\n\n{}",
                        row.feedback.empty() ? results.labs[i].name + ": " + row.state + "\n" : row.feedback);
    if (row.late > 0) text += fmt::format("\nhanded in {} late\n", counted(row.late, "day"));
  }
  return text;
}

std::string summary_of(const ClassResults& results) {
  std::string text;
  for (std::size_t i = 0; i < results.labs.size(); ++i) {
    const Lab& lab = results.labs[i];
    std::vector<std::size_t> histogram(10);
    std::map<std::string, int> missed;
    int count = 0;
    double sum = 0;
    for (const ClassResults::Student& student : results.students) {
      const LabRow& row = student.rows[i];
      if (!row.marks) continue;
      ++count, sum += *row.marks;
      ++histogram[static_cast<std::size_t>(std::min(9.0, 10 * *row.marks / lab.marks()))];
      for (const auto& [point, right] : row.points) missed[point] += right ? 0 : 1;
    }
    text += fmt::format("{}: {} of {} graded{}\n", lab.name, count, results.students.size(),
                        count > 0 ? fmt::format(", {:.1f} of {:g} marks on average", sum / count, lab.marks()) : "");
    for (std::size_t tenth = 0; tenth < 10; ++tenth)
      text += fmt::format("  {:3d} to {:3d} %  {:3d} {}\n", 10 * tenth, 10 * tenth + 10, histogram[tenth],
                          std::string(histogram[tenth], '#'));
    std::vector<std::pair<std::string, int>> most(missed.begin(), missed.end());
    std::ranges::stable_sort(most, std::greater{}, &std::pair<std::string, int>::second);
    for (const auto& [point, times] : most)
      if (times > 0) text += fmt::format("  missed by {}: {}\n", times, point);
    text += "\n";
  }
  return text;
}

void require_due(const CsvRows& due, const std::vector<std::string>& labs) {
  std::set<std::string> dated;
  for (const std::vector<std::string>& line : due) {
    require(line[0] == "*" || std::ranges::find(labs, line[0]) != labs.end(), "--due: unknown lab {}{}",
            in_quotes(line[0]), suggestion(line[0], labs));
    due_time(line);
    require(dated.insert(line[0]).second, "--due: {} has two lines; expected one", line[0]);
  }
}

int late_days(const CsvRows& due, const std::string& lab, std::time_t time) {
  const auto line_of = [&](const std::string& name) {
    return std::ranges::find_if(due, [&](const std::vector<std::string>& row) { return row[0] == name; });
  };
  const auto line = line_of(lab) != due.end() ? line_of(lab) : line_of("*");
  if (line == due.end()) return 0;
  std::tm local{};
  localtime_r(&time, &local);
  const auto late = static_cast<double>(clock_seconds(local) - due_time(*line));
  return std::max(0, static_cast<int>(std::ceil(late / 86400)));
}

}  // namespace heed::cli
