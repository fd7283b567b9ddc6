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
  std::optional<double> marks;                       ///< none for a missing or ungraded submission
  std::string feedback;                              ///< text for the student
  int late = 0;                                      ///< days after the due date, rounded up
  std::vector<std::pair<std::string, bool>> points;  ///< name of each point, and true if it earned marks
};

struct ClassResults {
  struct Student {
    std::string name;
    std::size_t roster_row = 0;  ///< 0: no row
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

/// A student's row in a roster, or 0 and the reason why there is none.
struct RosterRow {
  std::size_t row = 0;
  std::string problem{};
};

/// Returns each student's row in a roster, which is an export of Moodle's or Canvas's gradebook or any table with
/// names. The row must be the only one whose column ID or Identifier has one of the student's numbers and in which a
/// cell, or two adjacent cells joined, is the name; case, spaces and punctuation of names are ignored. If no row has
/// one of the numbers, the name alone decides; if no row has the name, the number alone. A name that consists of digits
/// is searched for only in the first column and in those of identities and numbers, since other cells may hold marks. A
/// row that matches several students is assigned to none of them.
std::vector<RosterRow> roster_rows(const CsvRows& roster, const std::vector<PlatformName>& students);

/// Returns the names of the columns that identity_in() reads, separated by commas.
std::string identity_column_names();

/// Returns the identity of a row for personal labs: the first non-empty cell in the columns identity, username, ID
/// number, SIS Login ID, SIS User ID. Empty if there is none.
std::string identity_in(const CsvRows& roster, std::size_t row);

/// Returns a row for each student: the marks of each lab, their total, the possible total, and the late days.
CsvRows gradebook(const ClassResults& results);

/// Returns the roster with the marks of each lab, and with the possible marks in Canvas's row of possible points. Both
/// are in the column `LAB` or, from Canvas, `LAB (123)`; in the column Grade of Moodle's grading worksheet, if there is
/// only one lab; or else in a new column. Other cells, and cells for which there is no mark, are unchanged. Prints
/// numbers of points in the roster that differ from the lab's marks on stderr.
CsvRows filled_roster(const ClassResults& results, CsvRows roster);

/// Returns all feedback for one student.
std::string feedback_for(const ClassResults& results, const ClassResults::Student& student);

/// Returns, for each lab, the number of graded submissions, the mean and the histogram of their marks, and all missed
/// points, the most frequent first.
std::string summary_of(const ClassResults& results);

/// Throws Error if a line of `due` names neither one of the labs nor `*`, has an invalid date or further fields, or has
/// the same name as an earlier line.
void require_due(const CsvRows& due, const std::vector<std::string>& labs);

/// Returns the number of days, rounded up, by which `time` (seconds since 1970) is late; 0 if it is in time or there is
/// no due date. Local dates and times are compared as if every day had 24 hours, whether or not summer time begins or
/// ends in between. `due` has lines `LAB,2026-11-30 18:00`; a date without a time means the end of that day, and LAB
/// `*` means all labs without a line of their own.
int late_days(const CsvRows& due, const std::string& lab, std::time_t time);

}  // namespace heed::cli
