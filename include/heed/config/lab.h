// Course labs as TOML: what is marked in one, and what a student answers (docs/labs.md).
#pragma once

#include "heed/base/tensor.h"

#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace heed {

enum class LabKind { mechanism, python, answers, personal };

/// A marked point: it gives all of its marks or none.
struct LabPoint {
  std::string name;
  double marks = 1;
  std::string hint{};

  // Labs of answers: one of formula and hash.
  std::string question{};
  std::string formula{};
  double tolerance = 1e-6;  ///< relative
  std::string hash{};
  Index digits = 3;  ///< digits of a number that a hash hides
};

/// A number that formulas use: as it stands there, or a field of what a heed command prints as JSON.
struct LabValue {
  std::optional<double> number{};
  std::vector<std::string> heed{};
  std::string field{};
};

struct Lab {
  std::string directory, name;  ///< name: that of its directory
  std::string title;
  LabKind kind = LabKind::answers;
  double minutes = 0;
  std::vector<std::string> hints;  ///< each says more than the one before it
  std::vector<LabPoint> points;

  // Labs of mechanisms.
  std::string mechanism, reference;  ///< reference: empty if there is none
  std::map<std::string, std::string> options, reference_options;
  double slack = 2;
  std::vector<std::string> forbidden;  ///< words that the file may not have

  std::map<std::string, LabValue> values;  ///< of answers

  bool repair = false;  ///< personal labs: bugs are to be repaired, instead of a mechanism written

  double marks() const;

  /// Returns the name of the student's file: softmax-backward.h.
  std::string file() const;
};

/// Reads DIRECTORY/lab.toml. Throws Error, which names the file and, where there is one, the line.
Lab load_lab(const std::string& directory);

/// An answer, a number or a text.
using Answer = std::variant<double, std::string>;

/// Answers by name, of a text that may come from anybody. Throws Error, which names the file `path`.
std::map<std::string, Answer> read_answers(const std::string& text, const std::string& path);

/// A file's last part, which all labs and students are called by: letters, digits, `-`, `_` and `.`, not first.
bool is_plain_name(const std::string& name);

}  // namespace heed
