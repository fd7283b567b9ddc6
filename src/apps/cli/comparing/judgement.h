// Verdicts on claims about arms, from the values of their runs.
#pragma once

#include "heed/analysis/claim_rows.h"

#include <optional>
#include <string>
#include <vector>

namespace heed::cli {

/// A statement of a claim: the difference of two arms exceeds a bound, the difference of two differences (four arms)
/// exceeds it, or all values of one arm are beyond it. The last form is not tested statistically.
struct Part {
  std::string text;
  std::vector<std::string> arms;
  double bound;
  bool below = false;  ///< for one arm: its values are below the bound, not above
};

struct JudgedPart {
  Part part;
  Verdict verdict;
  double value;                               ///< difference; for one arm, largest value if `below`, else smallest
  std::optional<Difference> difference = {};  ///< none for one arm
  std::optional<double> counted = {};  ///< binomial deviation for the test images, if larger than that between seeds

  std::optional<double> half_width() const {
    return difference ? std::optional(difference->half_width()) : std::nullopt;
  }
};

/// Values of runs by arm, their source, and how to compare them.
struct ClaimValues {
  std::string source;     ///< file or directories, for messages
  bool less = false;      ///< smaller values are better
  Index test_images = 0;  ///< number of test images per accuracy; 0: each arm's own number
  ClaimArms arms{};
};

/// A claim with the verdict on each part.
struct Judgement {
  ClaimArms arms;
  std::vector<std::string> compared;  ///< arms that are compared by differences; all have the same seeds
  std::vector<JudgedPart> parts;

  /// Returns the verdict that `seeds` seeds per compared arm would give if means and deviations stayed the same; 0
  /// stands for the present number of seeds.
  Verdict verdict(Index seeds = 0) const;

  /// Returns the shortest list of further seeds, numbered consecutively after the last existing one, that would decide
  /// an undecided claim. Each arm then has at most `most` seeds. Empty if no such list would decide it, or if the claim
  /// is decided.
  std::vector<Index> deciding_seeds(Index most) const;
};

/// Returns the arms that are compared by differences, without repetition, in the order of their first mention.
std::vector<std::string> compared_arms(const std::vector<Part>& parts);

/// Judges all parts. Throws Error for an unknown arm, for an arm without values, for an arm that occurs twice in a
/// part, if the compared arms do not all have the same three or more seeds or were tested on different numbers of
/// images, for invalid accuracies, and if `less` is set for accuracies.
Judgement judge(const ClaimValues& values, const std::vector<Part>& parts);

/// Returns the seeds as text, "1, 2, 3". Seeds after the twelfth are only counted: "and 5 more".
std::string few(const std::vector<Index>& seeds);

}  // namespace heed::cli
