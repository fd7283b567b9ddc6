// A class's results as a gradebook, as feedback to send, and as a summary.
#pragma once

#include "heed/config/lab.h"

#include <ctime>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace heed::cli {

/// The result of one student in one lab.
struct LabRow {
  std::string state;
  std::optional<double> marks;                       ///< null if nothing was handed in, or it is not graded
  std::string feedback;                              ///< text for the student
  int late = 0;                                      ///< days after the due date, rounded up
  std::vector<std::pair<std::string, bool>> points;  ///< name; true if it is right
};

struct ClassResults {
  struct Student {
    std::string name;
    std::size_t roster_row = 0;  ///< 0: none
    std::vector<LabRow> rows;    ///< by lab
  };
  std::vector<Lab> labs;
  std::vector<Student> students;
};

/// A table of texts; the first row holds the names of the columns.
using CsvRows = std::vector<std::vector<std::string>>;
CsvRows read_csv(const std::string& text);
std::string csv_of(const CsvRows& rows);

/// A student's name, and the numbers that Moodle or Canvas put into names of files.
struct PlatformName {
  std::string name;
  std::set<std::string> numbers;
};

/// A student's row in a roster; 0, and the reason, if there is none.
struct RosterRow {
  std::size_t row = 0;
  std::string problem{};
};

/// Returns the rows of students in a roster, an export of Moodle's or Canvas's gradebook or any table with names: for
/// each the only row that has a number in the column ID or Identifier, and the name, apart from case, spaces and
/// punctuation, in any cell or two adjacent ones. If no row has a number, or none the name, the other decides. Names of
/// digits alone are looked for in the first column and those of identities and numbers: other cells may hold marks. A
/// row of several students is none of theirs.
std::vector<RosterRow> roster_rows(const CsvRows& roster, const std::vector<PlatformName>& students);

/// Returns the identity of a row for personal labs: the first non-empty cell in the columns identity, username, ID
/// number, SIS Login ID, SIS User ID. Empty if there is none.
std::string identity_in(const CsvRows& roster, std::size_t row);

/// Returns a row for each student, with a column for each lab, the total, and the late days.
CsvRows gradebook(const ClassResults& results);

/// Returns the roster with a column for each lab: Canvas's `LAB (123)` and its row of possible points, the column Grade
/// of Moodle's grading worksheet if there is one lab, or else a new column. Other cells, and those without a mark, are
/// unchanged.
CsvRows filled_roster(const ClassResults& results, CsvRows roster);

/// Returns all feedback for one student.
std::string feedback_for(const ClassResults& results, const ClassResults::Student& student);

/// Returns, for each lab, the number of submissions, mean, histogram, and the points most often missed.
std::string summary_of(const ClassResults& results);

/// Throws Error for a line of `due` that is not of one of the labs or of `*`, or that has a wrong date or more fields,
/// and for the second line of a lab.
void require_due(const CsvRows& due, const std::vector<std::string>& labs);

/// Returns the days, rounded up, that `time` (seconds since 1970) is late by the local clock, whose days at the
/// beginning and the end of summer time do not have 24 hours. `due` has lines `LAB,2026-11-30 18:00`; without a time,
/// the day's end is meant, and LAB `*` means all other labs.
int late_days(const CsvRows& due, const std::string& lab, std::time_t time);

}  // namespace heed::cli
