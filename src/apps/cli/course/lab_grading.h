// Marking of a lab's submissions, for `heed grade` and `heed lab check`.
#pragma once

#include "submission.h"

#include "heed/config/lab.h"
#include "heed/io/json.h"
#include "src/apps/grading/sandbox/confined.h"
#include "src/apps/grading/definition/definition.h"
#include "src/apps/grading/marks/mechanism_marks.h"
#include "src/apps/grading/marks/python_marks.h"

#include <memory>
#include <optional>

namespace heed::cli {

/// Returns the directory of labs: notebooks/labs or labs in the working directory, or the installed one.
std::string labs_place();

/// Returns the lab of this name, or in this directory. Throws Error with the nearest name if there is none.
Lab find_lab(const std::string& name_or_directory);

/// Returns all labs in a directory, sorted by name.
std::vector<Lab> labs_in(const std::string& place);

/// Returns the text of the file that a student gets, which a personal lab derives from the student's identity; empty if
/// the lab has no such file.
std::string file_for(const Lab& lab, const std::string& student);

/// The marks of one submission.
struct LabResult {
  std::string problem;               ///< reason why the submission could not be graded; empty if it was graded
  std::vector<Mark> marks;           ///< in the order of the points
  std::vector<std::string> calls{};  ///< system functions that a compiled submission calls
  std::set<std::string> refused{};   ///< kinds of forbidden system calls that the running submission made

  double sum(const Lab& lab) const;
};

/// Returns the result as `heed lab check` prints it, with --json or as text.
Json json_of(const Lab& lab, const LabResult& result);
std::string text_of(const Lab& lab, const LabResult& result);

/// Grader of a lab's submissions; the constructor draws the hidden inputs and computes the correct answers.
class LabGrader {
 public:
  /// `shared` may be null; it must outlive the object. Throws Error if the lab itself is invalid.
  LabGrader(Lab lab, std::uint64_t seed, const SharedHeaders* shared);

  const Lab& lab() const { return *lab_; }

  /// Returns the text of everything that the marks depend on, except the submission, the student and the seed.
  std::string material() const;

  /// Grades an untrusted file. Throws SystemError if the grader itself fails.
  LabResult grade(const std::string& file, const std::string& student) const;

 private:
  /// Throws Error or Refused if nothing can be marked; `result` then has the system calls of a submission that
  /// compiles.
  void grade_mechanism(const std::string& source, const std::string& student, LabResult& result) const;
  std::string handed_out(const std::string& student) const;
  /// The points with the same options in their names, with their reference and hidden inputs.
  struct Setting {
    OptionValues own;                    ///< options in the points' names, "score_grad=hardtanh"
    std::vector<std::string> points{};   ///< names of the points without the options
    std::vector<std::size_t> indices{};  ///< indices of the points in the lab
    std::unique_ptr<const Mechanism> reference{};
    std::vector<HiddenCase> cases{};
  };

  void make_settings(const RandomStream& random);
  std::vector<Mark> marks_of_answers(const std::string& source) const;

  std::unique_ptr<const Lab> lab_;
  std::uint64_t seed_;
  const SharedHeaders* shared_;
  std::vector<Setting> settings_;
  std::optional<PythonTask> python_;
  std::map<std::string, double> values_;
};

/// `mechanism_name` of every personal mechanism.
inline constexpr const char* personal_name = "my_mechanism";

}  // namespace heed::cli
