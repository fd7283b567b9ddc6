// Search for the numbered backward step that computes a gradient, in the comments of a mechanism's source.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace heed {

/// Returns the path of a mechanism's page, from the root of heed's source: src/attention/NAME.cpp, or
/// src/attention/NAME/NAME.cpp for a mechanism with a folder. Searches the working directory and the installed files;
/// if it is in neither, returns the first path.
std::string mechanism_page(const std::string& mechanism);

/// Returns the text of a source file and of its private headers and their .cpp files, since several mechanisms may
/// share a backward pass; for a mechanism with a folder also of its other .cpp files. Skips missing files.
std::string source_with_includes(const std::filesystem::path& path);

/// A step described in the source, for example "3", "dv = A^T dout, dA = dout v^T".
struct BackwardStep {
  std::string number, text;
  bool operator==(const BackwardStep&) const = default;
};

/// Returns the steps whose comments, such as `Undoing 3: ...`, define the gradient of `tensor`, by "dv = " or
/// "dv_j += ". If no step defines the gradient of q or k, returns those that define dx, which stands for dq and dk.
/// Empty if no step is found.
std::vector<BackwardStep> backward_steps(const std::string& source, const std::string& tensor);

/// Returns the other steps that compute gradients used in `steps`; an error in them makes the results of `steps` wrong,
/// too. For the step "dq = dS k", "dS = A (dA - <A, dA>)" is such a step.
std::vector<BackwardStep> steps_before(const std::string& source, const std::vector<BackwardStep>& steps);

}  // namespace heed
