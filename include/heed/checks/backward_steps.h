// Which numbered step of a mechanism's backward pass makes a gradient, by the comments of its source.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// The text of a source file, then that of the files beside it that it includes, and of the .cpp files of these: a
/// mechanism's backward pass may be in a file that several share. Nothing of files that are not there.
std::string source_with_includes(const std::filesystem::path& path);

/// A step as the source describes it: "3", "dv = A^T dout, dA = dout v^T".
struct BackwardStep {
  std::string number, text;
  bool operator==(const BackwardStep&) const = default;
};

/// The steps whose descriptions, comments that begin with `Undoing 3:`, say what the gradient of `tensor` is: "dv = ",
/// "dv_j += ". Of q and k also those that say what dx is, which stands for both. None where the source says nothing.
std::vector<BackwardStep> backward_steps(const std::string& source, const std::string& tensor);

/// The other steps that make what these read: "dS = A (dA - <A, dA>)" for "dq = dS k". An error there shows here.
std::vector<BackwardStep> steps_before(const std::string& source, const std::vector<BackwardStep>& steps);

}  // namespace heed
