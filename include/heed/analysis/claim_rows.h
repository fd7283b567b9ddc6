// Results of runs for claims: a table with the columns claim, arm, seed and value.
#pragma once

#include "heed/analysis/statistics.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Runs of an arm.
struct ClaimArm {
  std::map<Index, double> values;  ///< test accuracies or bits, by seed
  std::map<Index, Index> lines;    ///< line number of the value, by seed
  std::vector<Index> diverged;     ///< seeds of diverged runs, whose value is a substitute
  Index images = 0;                ///< test images of an accuracy; 0: unknown

  std::vector<Index> seeds() const;
  Sample sample() const;
};

/// Arms of a claim, by name.
using ClaimArms = std::map<std::string, ClaimArm>;

/// Reads the rows of a claim; `claim` may be empty if the table has only one. Besides the four columns, `state`
/// ("finished" or "diverged") and `images` are read; others are ignored. Throws Error, naming file and line, for a
/// table of another form, a value that is not a number or too large, an accuracy on `images` that is not one of 0 to 1,
/// and a repeated seed of an arm.
ClaimArms read_claim(const std::string& path, std::string claim);

/// Throws Error, naming the line, unless all values of an arm are accuracies, 0 to 1.
void require_accuracies(const ClaimArm& arm, const std::string& path);

/// Maximum value: squares of larger ones could overflow.
inline constexpr double largest_claim_number = 1e100;

/// Parses a number; "-0" gives 0, other texts give none.
std::optional<double> claim_number(const std::string& text);

}  // namespace heed
