// Finds the numbered step of a mechanism's backward pass that computes a gradient, by the comments of its source.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Returns the path of a mechanism's page, from the root of heed's source: src/attention/NAME.cpp, or
/// src/attention/NAME/NAME.cpp for a mechanism with a folder. Looks in the working directory and among installed files;
/// if it is in neither, returns the first path.
std::string mechanism_page(const std::string& mechanism);

/// Returns the text of a source file, followed by that of its private headers and of their .cpp files, since several
/// mechanisms may share a backward pass, and by the other .cpp files of the folder of a mechanism that has one. Files
/// that do not exist add nothing.
std::string source_with_includes(const std::filesystem::path& path);

/// A step as the source describes it: "3", "dv = A^T dout, dA = dout v^T".
struct BackwardStep {
  std::string number, text;
  bool operator==(const BackwardStep&) const = default;
};

/// The steps whose descriptions, comments that begin with `Undoing 3:`, say what the gradient of `tensor` is: "dv = ",
/// "dv_j += ". For q and k also those of dx, which stands for both. Empty if the source has none.
std::vector<BackwardStep> backward_steps(const std::string& source, const std::string& tensor);

/// The other steps that make what these read: "dS = A (dA - <A, dA>)" for "dq = dS k". An error there shows here.
std::vector<BackwardStep> steps_before(const std::string& source, const std::vector<BackwardStep>& steps);

}  // namespace heed
