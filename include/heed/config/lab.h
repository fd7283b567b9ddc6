// Course labs in TOML: points with their marks, and a student's answers (docs/lab-format.md).
#pragma once

#include "heed/base/tensor.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace heed {

/// Kind of a lab: a mechanism in C++, functions in Python, answers, or a mechanism derived from the student's identity.
enum class LabKind { mechanism, python, answers, personal };

/// A point that gives all of its marks or none.
struct LabPoint {
  std::string name;
  double marks = 1;
  std::string hint{};

  // For labs of answers: `question` and either `formula` or a hash.
  std::string question{};
  std::string formula{};
  double tolerance = 1e-6;  ///< relative
  std::string hash{};
  Index digits = 3;  ///< significant digits of a hashed number
};

/// A value for formulas: a literal number, or a field of the JSON that a heed command prints.
struct LabValue {
  std::optional<double> number{};
  std::vector<std::string> heed{};
  std::string field{};
};

/// The content of a lab.toml.
struct Lab {
  std::string directory, name;  ///< name: last part of `directory`
  std::string title;
  LabKind kind = LabKind::answers;
  double minutes = 0;
  std::vector<std::string> hints;  ///< increasingly detailed
  std::vector<LabPoint> points;

  // For labs of mechanisms.
  std::string mechanism, reference;  ///< reference: empty if there is none
  std::map<std::string, std::string> options, reference_options;
  double slack = 2;
  std::vector<std::string> forbidden;  ///< words that the student's file must not contain

  std::map<std::string, LabValue> values;  ///< for labs of answers

  bool repair = false;  ///< personal labs: the task is to repair bugs instead of writing a mechanism

  /// Returns true if submissions are C++ that is compiled.
  bool is_compiled() const { return kind == LabKind::mechanism || kind == LabKind::personal; }

  /// Returns the sum of the points' marks.
  double marks() const;

  /// Returns the name of the student's file, for example softmax-backward.h.
  std::string file() const;
};

/// Reads DIRECTORY/lab.toml. Throws Error, naming the file and, if known, the line.
Lab load_lab(const std::string& directory);

/// A notebook's question, marked by a person; its answer is in the cell with the tag answer-ID.
struct NotebookQuestion {
  std::string id;
  double marks = 1;
  std::string rubric, answer;  ///< answer: the model answer
};

/// Reads the tables [[questions]] of a file. Throws Error, naming the file and, if known, the line.
std::vector<NotebookQuestion> load_questions(const std::string& path);

/// An answer: a number or a text.
using Answer = std::variant<double, std::string>;

/// Parses answers by name from untrusted text. Throws Error, naming the file `path`.
std::map<std::string, Answer> read_answers(const std::string& text, const std::string& path);

/// Returns true for a valid name of a lab or student: up to 100 letters, digits, hyphens, underscores and dots, not
/// starting with a dot or hyphen.
bool is_plain_name(const std::string& name);

}  // namespace heed
