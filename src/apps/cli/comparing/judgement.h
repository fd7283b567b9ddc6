// A claim about arms, judged by the values of their runs.
#pragma once

#include "heed/analysis/claim_rows.h"

#include <optional>
#include <string>
#include <vector>

namespace heed::cli {

/// A statement: of two arms, that their difference exceeds a bound; of four, that the difference of two differences
/// does; of one, that all its values are beyond the bound, which is not tested.
struct Part {
  std::string text;
  std::vector<std::string> arms;
  double bound;
  bool below = false;  ///< one arm: its values are below the bound, not above
};

struct JudgedPart {
  Part part;
  Verdict verdict;
  double value;                               ///< the difference; of one arm, the value nearest to or beyond the bound
  std::optional<Difference> difference = {};  ///< none of one arm
  std::optional<double> counted = {};         ///< s, where it is that of counting, since the seeds scatter less

  std::optional<double> half_width() const {
    return difference ? std::optional(difference->half_width()) : std::nullopt;
  }
};

/// Values of runs by arm, and their meaning.
struct ClaimValues {
  std::string source;     ///< file or directories, for messages
  bool less = false;      ///< less is better
  Index test_images = 0;  ///< images that an accuracy is counted on, instead of an arm's own number; 0: that number
  ClaimArms arms{};
};

/// A claim with the verdict on each part.
struct Judgement {
  ClaimArms arms;
  std::vector<std::string> compared;  ///< arms of differences, all with the same seeds
  std::vector<JudgedPart> parts;

  /// Returns the verdict with `seeds` in each compared arm, at unchanged means and deviations; 0: with the runs' seeds.
  Verdict verdict(Index seeds = 0) const;

  /// Returns the seeds after the runs' last one that would decide an undecided claim, at most `most` in each arm with
  /// those of the runs; none if so many would not.
  std::vector<Index> deciding_seeds(Index most) const;
};

/// Throws Error for a part with an unknown arm, and unless all compared arms have the same seeds, three or more.
Judgement judge(const ClaimValues& values, const std::vector<Part>& parts);

/// Returns "1, 2, 3", and the count of the others if there are more than twelve.
std::string few(const std::vector<Index>& seeds);

}  // namespace heed::cli
