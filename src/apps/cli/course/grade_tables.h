// The tables, the feedback and the page of similar submissions of a graded class.
#pragma once

#include "gradebook.h"
#include "intake.h"
#include "lab_grading.h"
#include "questions.h"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace heed::cli {

/// A file of one student for one lab.
struct Submission {
  std::string student, file;
  std::string identity;  ///< personal labs are derived from it
  const LabGrader* grader = nullptr;
  std::string place;  ///< path of its feedback, without the extension
  std::string mark;   ///< version, seed, identity, and checksums of lab and file; if one changes, the file is regraded

  /// Returns the text of the file, or the reason why it cannot be read.
  std::string text() const;

  /// Returns the stored result for this `mark`; none if there is none.
  std::optional<Json> result() const;
};

/// A class whose submissions are graded.
struct GradedClass {
  std::string output;              ///< the table of marks
  std::filesystem::path feedback;  ///< the directory of feedback, beside the table
  const Intake& intake;
  const std::vector<Lab>& labs;
  const std::vector<Submission>& submissions;  ///< ordered by student, then by lab
  const std::vector<QuestionSheet>& questions;
  const CsvRows &roster, &due;
  const std::vector<RosterRow>& roster_rows;  ///< by student; empty without a roster
};

/// Returns the path of the table of marks, without the extension .csv, followed by `ending`.
std::filesystem::path beside(std::filesystem::path output, const char* ending);

/// Files beside the table of marks.
struct BookFiles {
  std::string gradebook, roster, summary;
};
BookFiles book_files(const std::filesystem::path& output);

/// Writes all files of the class. Returns the number of submissions that are not graded.
std::size_t write_tables(const GradedClass& graded);

}  // namespace heed::cli
