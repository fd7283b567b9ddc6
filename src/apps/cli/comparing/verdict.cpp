// heed verdict: whether a claim about arms holds, by what their runs measured.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/table.h"

#include "heed/analysis/claim_rows.h"
#include "heed/analysis/statistics.h"
#include "heed/base/error.h"
#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/io/json.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iostream>

namespace heed::cli {

namespace {

struct VerdictArguments {
  std::string file, claim;
  std::vector<std::string> better, par, more, below, above;
  std::vector<double> by, within;
  bool less = false, json = false;
  Index test_images = 0;
};

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
  double value;                           ///< the difference; of one arm, the value nearest to the bound or beyond it
  std::optional<double> half_width = {};  ///< half the width of the difference's interval
  std::optional<double> counted = {};     ///< s, where it is that of counting, since the seeds scatter less
};

/// Takes `names` apart into lists of so many.
std::vector<std::vector<std::string>> in_groups(const std::vector<std::string>& names, std::ptrdiff_t each,
                                                const char* option, const char* expected) {
  require(std::ssize(names) % each == 0, "verdict: {} takes {}, or several times so many; {} words were given", option,
          expected, names.size());
  std::vector<std::vector<std::string>> groups;
  for (auto name = names.begin(); name != names.end(); name += each) groups.emplace_back(name, name + each);
  return groups;
}

/// For each of `count` parts a number; one that is given may stand for all, and none for 0.
std::vector<double> numbers_for(std::vector<double> given, std::size_t count, const char* option, const char* of) {
  require(given.empty() || count > 0, "verdict: {} belongs to {}, which is not given", option, of);
  if (given.size() <= 1) given.resize(count, given.empty() ? 0 : given[0]);
  require(given.size() == count, "verdict: {} has {} numbers; expected one for all, or {}", option, given.size(),
          count);
  std::ranges::replace(given, -0.0, 0.0);  // no -0 is printed
  return given;
}

void add_bounds(std::vector<Part>& parts, const std::vector<std::string>& words, bool below) {
  const char* const option = below ? "--below" : "--above";
  for (const std::vector<std::string>& two : in_groups(words, 2, option, "an arm and a number")) {
    const std::optional<double> bound = claim_number(two[1]);
    require(bound.has_value(), "verdict: {} {}: {} is no number", option, two[0], in_quotes(two[1]));
    parts.push_back({fmt::format("{} {} {}", two[0], option + 2, *bound), {two[0]}, *bound, below});
  }
}

std::vector<Part> parts_of(const VerdictArguments& a) {
  const auto better = in_groups(a.better, 2, "--better", "two arms"), par = in_groups(a.par, 2, "--par", "two arms"),
             more = in_groups(a.more, 4, "--more", "four arms");
  require(par.empty() || !a.within.empty(), "verdict: --par wants --within, the difference that does not count");
  const std::vector<double> by = numbers_for(a.by, better.size() + more.size(), "--by", "--better or --more"),
                            within = numbers_for(a.within, par.size(), "--within", "--par");
  const auto by_text = [](double x) { return x == 0 ? "" : fmt::format(" by {}", x); };
  std::vector<Part> parts;
  add_bounds(parts, a.below, true);
  add_bounds(parts, a.above, false);
  for (std::size_t i = 0; i < better.size(); ++i)
    parts.push_back({fmt::format("{} better than {}{}", better[i][0], better[i][1], by_text(by[i])), better[i], by[i]});
  for (std::size_t i = 0; i < more.size(); ++i) {
    const std::vector<std::string>& four = more[i];
    const double x = by[better.size() + i];
    parts.push_back(
        {fmt::format("{} over {}, more than {} over {}{}", four[0], four[1], four[2], four[3], by_text(x)), four, x});
  }
  for (std::size_t i = 0; i < par.size(); ++i)
    parts.push_back(
        {fmt::format("{} on par with {} within {}", par[i][0], par[i][1], within[i]), par[i], 0 - within[i]});
  require(
      !parts.empty(),
      "verdict: nothing is to be judged; expected --better A B, --par A B, --more A B C D, --below A X or --above A X");
  return parts;
}

/// "1, 2, 3": a few of them, and how many there are more.
std::string few(const std::vector<Index>& seeds) {
  constexpr std::size_t shown = 12;
  const std::size_t count = std::min(seeds.size(), shown);
  const std::string text = fmt::format("{}", fmt::join(seeds.begin(), seeds.begin() + static_cast<Index>(count), ", "));
  return seeds.size() > count ? fmt::format("{} and {} more", text, seeds.size() - count) : text;
}

/// The arms that are compared, in their order. Throws Error unless all have the same seeds, three or more, and every
/// arm that a part names is there.
std::vector<std::string> compared_arms(const ClaimArms& arms, const std::vector<Part>& parts, const std::string& file) {
  std::vector<std::string> known, names;
  for (const auto& [name, arm] : arms) known.push_back(name);
  for (const Part& part : parts)
    for (const std::string& name : part.arms) {
      require(arms.contains(name), "{}: there is no arm {}{}", file, in_quotes(name), suggestion(name, known));
      require(std::ranges::count(part.arms, name) == 1, "verdict: {}: {} is compared with itself", in_quotes(part.text),
              in_quotes(name));
      if (part.arms.size() > 1 && std::ranges::find(names, name) == names.end()) names.push_back(name);
    }
  for (const std::string& name : names) {
    const std::vector<Index> seeds = arms.at(name).seeds(), first = arms.at(names[0]).seeds();
    require(seeds.size() >= 3, "{}: {} has {} seed{}; so few agree by luck and decide nothing; expected 3 or more",
            file, in_quotes(name), seeds.size(), seeds.size() == 1 ? "" : "s");
    require(seeds == first, "{}: {} has the seeds {}, but {} has {}; the arms of a claim have the same", file,
            in_quotes(names[0]), few(first), in_quotes(name), few(seeds));
  }
  return names;
}

JudgedPart judge_bound(const Part& part, const ClaimArm& arm) {
  double nearest = arm.values.begin()->second;
  for (const auto& [seed, value] : arm.values)
    nearest = part.below ? std::max(nearest, value) : std::min(nearest, value);
  const bool beyond = part.below ? nearest < part.bound : nearest > part.bound;
  return {part, beyond ? Verdict::holds : Verdict::does_not_hold, nearest};
}

JudgedPart judge_difference(const Part& part, const ClaimArms& arms, const VerdictArguments& a) {
  std::vector<Sample> samples;
  const Index images = a.test_images > 0 ? a.test_images : arms.at(part.arms[0]).images;
  for (const std::string& name : part.arms) {
    const ClaimArm& arm = arms.at(name);
    require(a.test_images > 0 || arm.images == images, "{}: {} was tested on {} images, {} on {}; expected the same",
            a.file, in_quotes(part.arms[0]), images, in_quotes(name), arm.images);
    if (images > 0) require_accuracies(arm, a.file);
    samples.push_back(arm.sample());
  }
  require(!a.less || images == 0, "{}: {} has accuracies, which are counted on images; --less is for losses", a.file,
          in_quotes(part.arms[0]));
  std::vector<double> signs{1, -1, -1, 1};
  signs.resize(samples.size());
  if (a.less)
    for (double& sign : signs) sign = -sign;
  const double least = images > 0 ? counting_variance(samples, images) : 0;
  const Difference difference = *pooled(samples, signs, least);
  double squares = 0;
  for (const Sample& sample : samples) squares += sample.squares;
  JudgedPart judged{part, exceeds(difference, part.bound), difference.value, difference.half_width()};
  if (squares / difference.freedom < least) judged.counted = std::sqrt(least);
  return judged;
}

Table arm_table(const ClaimArms& arms, const std::vector<std::string>& compared) {
  Table table;
  table.column("arm", "arm")
      .column("seeds", "seeds")
      .column("mean", "mean", fixed(4))
      .column("deviation", "sd", fixed(4));
  table.data({"diverged"});
  for (const std::string& name : compared) {
    const ClaimArm& arm = arms.at(name);
    const Sample found = arm.sample();
    table.add(
        {name, found.count, found.mean, found.deviation(), Json::list({arm.diverged.begin(), arm.diverged.end()})});
  }
  return table;
}

/// Four decimals with a sign; what rounds to zero has that of zero.
std::string difference_text(double x) {
  const std::string text = fmt::format("{:+.4f}", x);
  return text == "-0.0000" ? "+0.0000" : text;
}

/// Describes the interval of an undecided part: "a may be anything from 0.0027 worse to 0.0427 better than b".
std::string open_text(const JudgedPart& one) {
  const std::vector<std::string>& arms = one.part.arms;
  const bool two = arms.size() == 2;
  const auto end = [&](double x) {
    const std::string text = difference_text(x);
    return text.substr(1) + (text[0] == '-' ? two ? " worse" : " less" : two ? " better" : " more");
  };
  const std::string first = two ? arms[0] : fmt::format("{} over {}", arms[0], arms[1]),
                    second = two ? arms[1] : fmt::format("{} over {}", arms[2], arms[3]);
  if (*one.half_width == 0) return "the seeds of each arm agree, and the difference is exactly the bound";
  return fmt::format("by these seeds (95 %), {} may be anything from {} to {} than {}; more seeds narrow it down",
                     first, end(one.value - *one.half_width), end(one.value + *one.half_width), second);
}

Table part_table(const std::vector<JudgedPart>& parts) {
  Table table;
  table.column("part", "part").text("difference").text("95 %").data({"value", "half_width", "bound"});
  table.column("verdict", "verdict");
  for (const JudgedPart& one : parts)
    table.add({one.part.text, one.half_width ? difference_text(one.value) : significant(4)(one.value),
               one.half_width ? fmt::format("± {:.4f}", *one.half_width) : "not tested", one.value, one.half_width,
               one.part.bound, name_of(one.verdict)});
  return table;
}

/// Returns a line for each run that diverged, and for each part whose verdict wants explaining.
std::string notes_on(const ClaimArms& arms, const std::vector<JudgedPart>& parts) {
  std::vector<std::string> named;
  std::string notes;
  for (const JudgedPart& one : parts)
    for (const std::string& name : one.part.arms) {
      if (std::ranges::find(named, name) != named.end()) continue;
      named.push_back(name);
      for (const Index seed : arms.at(name).diverged)
        notes += fmt::format("{}, seed {}: diverged, and counts as {}\n", printable(name), seed,
                             arms.at(name).values.at(seed));
    }
  for (const JudgedPart& one : parts) {
    if (one.counted)
      notes += fmt::format("{}: the seeds agree better than so few images can; their deviation is taken to be {:.4f}\n",
                           printable(one.part.text), *one.counted);
    if (one.verdict == Verdict::undecided)
      notes += fmt::format("{}: {}\n", printable(one.part.text), printable(open_text(one)));
  }
  return notes;
}

int verdict_command(const VerdictArguments& a) {
  const std::vector<Part> parts = parts_of(a);
  const ClaimArms arms = read_claim(a.file, a.claim);
  const std::vector<std::string> compared = compared_arms(arms, parts, a.file);
  std::vector<JudgedPart> judged;
  std::vector<Verdict> verdicts;
  for (const Part& part : parts) {
    judged.push_back(part.arms.size() == 1 ? judge_bound(part, arms.at(part.arms[0]))
                                           : judge_difference(part, arms, a));
    verdicts.push_back(judged.back().verdict);
  }
  const Verdict verdict = together(verdicts);
  if (a.json) {
    const Json json = Json::object({{"verdict", name_of(verdict)},
                                    {"arms", arm_table(arms, compared).json()},
                                    {"parts", part_table(judged).json()}});
    std::cout << json.dump(2) << "\n";
    return ok;
  }
  if (!compared.empty()) {
    arm_table(arms, compared).print(std::cout);
    std::cout << "\n";
  }
  part_table(judged).print(std::cout);
  std::cout << "\n" << notes_on(arms, judged) << name_of(verdict) << "\n";
  return ok;
}

constexpr const char* verdict_help =
    "FILE is a CSV table with the columns claim, arm, seed and value: a test accuracy, 0 to 1, or bits, for each run. "
    "Where it has a column images, that is how many images an accuracy was counted on; in a column state, 'diverged' "
    "marks runs that count as chance. All arms have the same seeds, three or more.\n\n"
    "With h the half-width of the 95 % interval of a - b (t s sqrt(1/n_a + 1/n_b), s^2 the variance of the arms "
    "pooled, for accuracies on n images no less than p (1 - p) / n):\n"
    "  better by x      holds if a - b - h > x, does not hold if a - b + h < x, else it is undecided\n"
    "  on par within x  the same with -x\n"
    "  more by x        the same as better for (a - b) - (c - d), whose s is that of all four arms\n"
    "Counts, residuals and ranks are not tested: --below and --above want every value of an arm there, and any seeds. "
    "Options may be repeated: a claim of several parts holds if all do, and does not hold if one does not.";

}  // namespace

void add_verdict(Command program) {
  static VerdictArguments a;
  Command command =
      program.command("verdict", "Judge a claim about arms by their runs: holds, does not hold, undecided");
  command.option("FILE", &a.file, "what the runs measured", {.required = true});
  command.option("--claim", &a.claim, "the claim, where FILE has several", {.value = "NAME"});
  command.option("--better", &a.better, "A is better than B", {.value = "A B"});
  command.option("--par", &a.par, "A is on par with B, or better", {.value = "A B"});
  command.option("--more", &a.more, "A is better than B by more than C is better than D", {.value = "A B C D"});
  command.option("--below", &a.below, "every value of A is less than X", {.value = "A X"});
  command.option("--above", &a.above, "every value of A is more than X", {.value = "A X"});
  command.option("--by", &a.by, "by how much better; one for all, or one for each; default: 0",
                 {.value = "X", .range = {{0, 1e9}}});
  command.option("--within", &a.within, "difference that does not count for --par; one for all, or one for each",
                 {.value = "X", .range = {{0, 1e9}}});
  command.option("--less", &a.less, "less is better: bits, losses");
  command.option("--test-images", &a.test_images, "images that an accuracy is counted on, instead of FILE's",
                 {.value = "N", .range = {{1, 1e9}}});
  command.option("--json", &a.json, "print JSON");
  command.footer(verdict_help);
  command.action([] { return verdict_command(a); });
}

}  // namespace heed::cli
