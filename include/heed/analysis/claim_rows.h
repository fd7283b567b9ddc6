// Tables of run results for testing claims, with the columns claim, arm, seed and value.
#pragma once

#include "heed/analysis/statistics.h"

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Results of an arm's runs.
struct ClaimArm {
  std::map<Index, double> values;  ///< by seed: test accuracy, or bits per character, byte or dimension
  std::map<Index, Index> lines;    ///< line number of the value, by seed
  std::vector<Index> diverged;     ///< seeds of diverged runs, whose values are those of random guessing
  Index images = 0;                ///< number of test images on which each accuracy was measured; 0: unknown

  std::vector<std::string> ignored{};  ///< one line of text per excluded run, with the reason

  std::vector<Index> seeds() const;
  Sample sample() const;
};

/// Arms of a claim, by name.
using ClaimArms = std::map<std::string, ClaimArm>;

/// Reads the rows of a claim; `claim` may be empty if the table has only one. Besides the four columns, `state`
/// ("finished" or "diverged") and `images` are read; others are ignored. Throws Error, naming file and line, for a
/// malformed table, a value that is not a number or is too large, a value outside 0 to 1 if `images` is given, a
/// repeated seed of an arm, and different `images` in an arm.
ClaimArms read_claim(const std::string& path, std::string claim);

/// Throws Error, naming the line, unless all values of an arm are accuracies, from 0 to 1.
void require_accuracies(const ClaimArm& arm, const std::string& path);

/// Maximum magnitude of a value, so that sums of squares cannot overflow.
inline constexpr double largest_claim_number = 1e100;

/// Parses a finite number; "-0" gives 0. Returns none for other text and for magnitudes above largest_claim_number.
std::optional<double> claim_number(const std::string& text);

}  // namespace heed
