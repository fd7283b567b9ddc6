// Submissions of a class: the file of each student for each lab, however it is named or packed.
#pragma once

#include "src/apps/grading/sandbox/confined.h"

#include <filesystem>
#include <iosfwd>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace heed::cli {

/// A file that students are to hand in, such as sima.h for the lab sima.
struct ExpectedFile {
  std::string name, file;
};

/// A file that was handed in and is not graded.
struct NotRecognised {
  std::string student;  ///< empty: unknown
  std::string lab;      ///< lab without a graded file because several files compete; otherwise empty
  std::string file, remedy;
};

/// Files of labs and notebooks, by student and name. Accepted forms, if it is clear which lab is meant:
///
///   STUDENT/LAB.h, STUDENT/LAB/LAB.h, and both in deeper directories
///   Lab.h, lab_name.py, "lab-name (1).py", lab-1.h, "lab - Copy.h", lab.h.txt
///   zip and tar archives with such files
///   Moodle's folders:  Jane Doe_1234567_assignsubmission_file/lab.h, or its files: Jane Doe_..._file_lab.h
///   Canvas's files:    doejane_LATE_12345_678910_lab.h
///   STUDENT_lab.h and STUDENT.zip beside the folders
///
/// Names that differ only in case belong to one student. If Canvas's files of one name have different numbers, each
/// number counts as a separate student, NAME_NUMBER. Moodle's numbers differ between assignments, so all its folders of
/// one name belong to one student.
class Intake {
 public:
  Intake(const std::string& directory, std::vector<ExpectedFile> expected);

  /// Returns the students' names, sorted.
  const std::vector<std::string>& students() const { return students_; }

  /// Returns the student of this name, ignoring case; the name itself if there is no such student.
  std::string student_of(const std::string& name) const;

  /// Returns the student's numbers in Moodle or Canvas.
  std::set<std::string> numbers_of(const std::string& student) const;

  /// Returns the path of a student's file for the lab or notebook `name`; empty if there is none.
  std::string file_of(const std::string& student, const std::string& name) const;

  const std::vector<NotRecognised>& not_recognised() const { return not_recognised_; }

  /// Prints the files that were not recognised, each on a line that begins with `begin`.
  void list_not_recognised(std::ostream& out, const char* begin) const;

 private:
  using Path = std::filesystem::path;
  /// A file that may belong to a lab: the lower the rank, the closer its name to the expected one.
  struct Candidate {
    std::string shown, file;
    int rank;
  };

  void name_moodle_numbers() const;
  void take_root(const Path& entry);
  std::string student_called(const std::string& name, const std::string& number);
  void walk(const std::string& student, const Path& directory, const Path& shown, int depth);
  void take_file(const std::string& student, const Path& file, const Path& shown, bool packed = false);
  void unpack(const std::string& student, const Path& file, const Path& shown);
  const ExpectedFile* expected_of(const std::string& name) const;
  void leave_out(const std::string& student, const Path& shown, const std::string& remedy) {
    not_recognised_.push_back({student, "", shown, remedy});
  }
  void choose(const std::string& student, const std::string& lab, std::vector<Candidate> candidates);

  const std::vector<ExpectedFile> expected_;
  PrivateDirectory unpacked_;
  int unpacked_count_ = 0;
  std::vector<std::string> students_;
  std::map<std::string, std::string> by_key_;
  std::map<std::string, std::set<std::string>> numbers_;
  std::map<std::string, std::set<std::string>> canvas_numbers_;                       ///< by name in lower case
  std::map<std::pair<std::string, std::string>, std::vector<Candidate>> candidates_;  ///< by student and lab
  std::map<std::pair<std::string, std::string>, std::string> files_;                  ///< by student and lab
  std::set<std::string> too_deep_;        ///< students with directories that are too deep to be read
  std::map<std::string, int> unmatched_;  ///< number of files whose names match no lab, by student
  std::vector<NotRecognised> not_recognised_;
  int notebooks_ = 0;  ///< number of notebooks, counted only if no questions are available
};

}  // namespace heed::cli
