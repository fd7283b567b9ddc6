#include "judgement.h"

#include "heed/base/error.h"
#include "heed/base/suggest.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace heed::cli {

namespace {

/// Throws Error if an arm occurs twice in a part. In the difference of two differences, the runs of such an arm would
/// count as two independent samples.
void require_different_arms(const Part& part) {
  const std::vector<std::string>& arms = part.arms;
  const std::string text = in_quotes(part.text);
  for (std::size_t i = 0; i + 1 < arms.size(); i += 2)
    require(arms[i] != arms[i + 1], "verdict: {}: {} is compared with itself", text, in_quotes(arms[i]));
  if (arms.size() < 4) return;
  const bool first = arms[0] == arms[2], second = arms[1] == arms[3];
  require(!first || !second, "verdict: {}: the two differences are the same", text);
  require(!first && !second, "verdict: {}: {} cancels, since it is in both differences; expected --better {} {}", text,
          in_quotes(first ? arms[0] : arms[1]), first ? arms[3] : arms[0], first ? arms[1] : arms[2]);
  require(arms[0] != arms[3] && arms[1] != arms[2],
          "verdict: {}: {} is in both differences; expected four different arms", text,
          in_quotes(arms[0] == arms[3] ? arms[0] : arms[1]));
}

/// Returns the runs of an arm that do not count, for an error message: " (s/a/seed-4: not finished, so it is ignored; 2
/// more)". Empty if there are none.
std::string ignored_text(const ClaimArm& arm) {
  if (arm.ignored.empty()) return "";
  const std::size_t others = arm.ignored.size() - 1;
  return fmt::format(" ({}{})", arm.ignored.front(), others > 0 ? fmt::format("; {} more", others) : "");
}

/// Throws judge()'s errors about unknown, repeated and empty arms, and about seeds.
void require_arms(const ClaimArms& arms, const std::vector<Part>& parts, const std::string& source) {
  std::vector<std::string> known;
  for (const auto& [name, arm] : arms) known.push_back(name);
  for (const Part& part : parts) {
    for (const std::string& name : part.arms) {
      require(arms.contains(name), "{}: unknown arm {}{}", source, in_quotes(name), suggestion(name, known));
      require(!arms.at(name).values.empty(), "{}: {} has no run that counts{}", source, in_quotes(name),
              ignored_text(arms.at(name)));
    }
    require_different_arms(part);
  }
  const std::vector<std::string> names = compared_arms(parts);
  for (const std::string& name : names) {
    const std::vector<Index> seeds = arms.at(name).seeds(), first = arms.at(names[0]).seeds();
    require(seeds.size() >= 3, "{}: {} has {}; so few may agree by chance; expected 3 or more{}", source,
            in_quotes(name), counted(std::ssize(seeds), "seed"), ignored_text(arms.at(name)));
    require(seeds == first, "{}: {} has the seeds {}, {} has {}; all arms of a claim need the same seeds", source,
            in_quotes(names[0]), few(first), in_quotes(name), few(seeds));
  }
}

JudgedPart judge_bound(const Part& part, const ClaimArm& arm) {
  double nearest = arm.values.begin()->second;
  for (const auto& [seed, value] : arm.values)
    nearest = part.below ? std::max(nearest, value) : std::min(nearest, value);
  const bool beyond = part.below ? nearest < part.bound : nearest > part.bound;
  return {part, beyond ? Verdict::holds : Verdict::does_not_hold, nearest};
}

JudgedPart judge_difference(const Part& part, const ClaimValues& a) {
  std::vector<Sample> samples;
  const Index images = a.test_images > 0 ? a.test_images : a.arms.at(part.arms[0]).images;
  for (const std::string& name : part.arms) {
    const ClaimArm& arm = a.arms.at(name);
    require(a.test_images > 0 || arm.images == images,
            "{}: {} was tested on {} images, {} on {}; expected the same number", a.source, in_quotes(part.arms[0]),
            images, in_quotes(name), arm.images);
    if (images > 0 && !arm.lines.empty()) require_accuracies(arm, a.source);
    samples.push_back(arm.sample());
  }
  require(!a.less || images == 0, "{}: {} has accuracies on test images; --less is only for losses", a.source,
          in_quotes(part.arms[0]));
  const double better = a.less ? -1 : 1;
  std::vector<double> signs{better, -better, -better, better};
  signs.resize(samples.size());
  const double least = images > 0 ? counting_variance(samples, images) : 0;
  const Difference difference = *pooled(samples, signs, least);
  double squares = 0;
  for (const Sample& sample : samples) squares += sample.squares;
  JudgedPart judged{part, exceeds(difference, part.bound), difference.value, difference};
  if (squares / difference.freedom < least) judged.counted = std::sqrt(least);
  return judged;
}

/// Returns the number of seeds in each compared arm.
Index seeds_of(const Judgement& judged) {
  return static_cast<Index>(judged.arms.at(judged.compared.at(0)).values.size());
}

}  // namespace

std::string few(const std::vector<Index>& seeds) {
  constexpr std::size_t shown = 12;
  const std::size_t count = std::min(seeds.size(), shown);
  const std::string text = fmt::format("{}", fmt::join(seeds.begin(), seeds.begin() + static_cast<Index>(count), ", "));
  return seeds.size() > count ? fmt::format("{} and {} more", text, seeds.size() - count) : text;
}

Verdict Judgement::verdict(Index seeds) const {
  std::vector<Verdict> verdicts;
  for (const JudgedPart& one : parts)
    verdicts.push_back(seeds == 0 || !one.difference
                           ? one.verdict
                           : exceeds(with_seeds(*one.difference, seeds_of(*this), seeds), one.part.bound));
  return together(verdicts);
}

std::vector<Index> Judgement::deciding_seeds(Index most) const {
  if (verdict() != Verdict::undecided) return {};
  const Index last = arms.at(compared.at(0)).values.rbegin()->first;
  std::vector<Index> further;
  for (Index seeds = seeds_of(*this) + 1; seeds <= most; ++seeds) {
    further.push_back(last + static_cast<Index>(further.size()) + 1);
    if (verdict(seeds) != Verdict::undecided) return further;
  }
  return {};
}

std::vector<std::string> compared_arms(const std::vector<Part>& parts) {
  std::vector<std::string> names;
  for (const Part& part : parts)
    for (const std::string& name : part.arms)
      if (part.arms.size() > 1 && std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

Judgement judge(const ClaimValues& values, const std::vector<Part>& parts) {
  require_arms(values.arms, parts, values.source);
  Judgement result{values.arms, compared_arms(parts), {}};
  for (const Part& part : parts)
    result.parts.push_back(part.arms.size() == 1 ? judge_bound(part, values.arms.at(part.arms[0]))
                                                 : judge_difference(part, values));
  return result;
}

}  // namespace heed::cli
