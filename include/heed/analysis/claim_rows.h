// The measurements of runs for claims: a table with the columns claim, arm, seed and value.
#pragma once

#include "heed/analysis/statistics.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// The runs of an arm.
struct ClaimArm {
  std::map<Index, double> values;  ///< test accuracies, or bits, by seed
  std::map<Index, Index> lines;    ///< line of the value, by seed
  std::vector<Index> diverged;     ///< the seeds whose value stands for a run that diverged
  Index images = 0;                ///< number of test images of an accuracy; 0: unknown

  std::vector<Index> seeds() const;
  Sample sample() const;
};

/// The arms of a claim, by name.
using ClaimArms = std::map<std::string, ClaimArm>;

/// Reads the rows of a claim; the name may be empty where the table has one claim alone. Columns beside those four are
/// `state`, which is "finished" or "diverged", `images`, and others, which are left alone. Throws Error, naming file
/// and line, for a table of another form, a value that is no number or too large, one counted on images that is none of
/// 0 to 1, and a seed that an arm has twice.
ClaimArms read_claim(const std::string& path, std::string claim);

/// Throws Error, naming the line, unless all values of an arm in this file are accuracies, 0 to 1.
void require_accuracies(const ClaimArm& arm, const std::string& path);

/// Larger numbers are refused: their squares would be infinite.
inline constexpr double largest_claim_number = 1e100;

/// The number that a text is, 0 for "-0"; none if it is something else.
std::optional<double> claim_number(const std::string& text);

}  // namespace heed
