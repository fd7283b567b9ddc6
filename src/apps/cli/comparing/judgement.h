// Verdicts on claims about arms, from the values of their runs.
#pragma once

#include "heed/analysis/claim_rows.h"

#include <optional>
#include <string>
#include <vector>

namespace heed::cli {

/// A statement: the difference of two arms exceeds a bound; the difference of two differences (four arms) does; or all
/// values of one arm are beyond the bound, without a statistical test.
struct Part {
  std::string text;
  std::vector<std::string> arms;
  double bound;
  bool below = false;  ///< one arm: its values are below the bound, not above
};

struct JudgedPart {
  Part part;
  Verdict verdict;
  double value;                               ///< the difference; one arm: the largest (below) or smallest value
  std::optional<Difference> difference = {};  ///< none for one arm
  std::optional<double> counted = {};         ///< deviation from counting test images, if that between seeds is smaller

  std::optional<double> half_width() const {
    return difference ? std::optional(difference->half_width()) : std::nullopt;
  }
};

/// Values of runs by arm, with their meaning.
struct ClaimValues {
  std::string source;     ///< file or directories, for messages
  bool less = false;      ///< smaller values are better
  Index test_images = 0;  ///< test images of an accuracy, overriding the arms' own number; 0: the arms' own
  ClaimArms arms{};
};

/// A claim with the verdict on each part.
struct Judgement {
  ClaimArms arms;
  std::vector<std::string> compared;  ///< arms in differences, all with the same seeds
  std::vector<JudgedPart> parts;

  /// Returns the verdict for `seeds` seeds per compared arm, at unchanged means and deviations; 0: the runs' seeds.
  Verdict verdict(Index seeds = 0) const;

  /// Returns the fewest seeds after the runs' last one that would decide an undecided claim, with at most `most` seeds
  /// in each arm altogether; none if no such number would decide it.
  std::vector<Index> deciding_seeds(Index most) const;
};

/// Returns the arms in differences, each once, in the order in which the parts name them.
std::vector<std::string> compared_arms(const std::vector<Part>& parts);

/// Judges all parts. Throws Error for an unknown arm and one without values, for differences that share an arm, and
/// unless all compared arms have the same seeds, at least three.
Judgement judge(const ClaimValues& values, const std::vector<Part>& parts);

/// Returns the seeds as text, "1, 2, 3"; after twelve seeds, only the number of the others, "and 5 more".
std::string few(const std::vector<Index>& seeds);

}  // namespace heed::cli
