// heed verdict: verdict on a claim about arms, from the values of their runs.
#include "claim_runs.h"
#include "judgement.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/error.h"
#include "heed/config/sweep.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"
#include "heed/base/suggest.h"
#include "heed/io/json.h"
#include "heed/train/processes/core_count.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <set>

namespace heed::cli {

namespace {

struct VerdictArguments {
  std::vector<std::string> given;
  std::string claim, figure;
  std::vector<std::string> better, par, more, below, above;
  std::vector<double> by, within;
  bool less = false, json = false, run = false;
  Index test_images = 0, seeds = 0;
  int jobs = 1, threads = 0;

  /// Returns true if the runs are rows of a table, not directories.
  bool table() const { return given.size() == 1 && !std::filesystem::is_directory(given[0]); }
};

/// Splits `names` into groups of `each` names.
std::vector<std::vector<std::string>> in_groups(const std::vector<std::string>& names, std::ptrdiff_t each,
                                                const char* option, const char* expected) {
  require(std::ssize(names) % each == 0, "verdict: {} expects {}, once or repeatedly; found {}", option, expected,
          counted(std::ssize(names), "word"));
  std::vector<std::vector<std::string>> groups;
  for (auto name = names.begin(); name != names.end(); name += each) groups.emplace_back(name, name + each);
  return groups;
}

/// Returns a number for each of `count` parts; a single given number applies to all parts, and no number means 0.
std::vector<double> numbers_for(std::vector<double> given, std::size_t count, const char* option, const char* of) {
  require(given.empty() || count > 0, "verdict: {} requires {}", option, of);
  if (given.size() <= 1) given.resize(count, given.empty() ? 0 : given[0]);
  require(given.size() == count, "verdict: {} has {} numbers; expected one for all, or {}", option, given.size(),
          count);
  std::ranges::replace(given, -0.0, 0.0);  // so that -0 is printed as 0
  return given;
}

void add_bounds(std::vector<Part>& parts, const std::vector<std::string>& words, bool below) {
  const char* const option = below ? "--below" : "--above";
  for (const std::vector<std::string>& two : in_groups(words, 2, option, "an arm and a number")) {
    const std::optional<double> bound = claim_number(two[1]);
    require(bound.has_value(), "verdict: {} {}: {} is not a number", option, two[0], in_quotes(two[1]));
    parts.push_back({fmt::format("{} {} {}", two[0], option + 2, *bound), {two[0]}, *bound, below});
  }
}

std::vector<Part> parts_of(const VerdictArguments& a) {
  const auto better = in_groups(a.better, 2, "--better", "two arms"), par = in_groups(a.par, 2, "--par", "two arms"),
             more = in_groups(a.more, 4, "--more", "four arms");
  require(par.empty() || !a.within.empty(), "verdict: --par requires --within, the tolerated difference");
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
        {fmt::format("{0} leads {1}{4} more than {2} leads {3}", four[0], four[1], four[2], four[3], by_text(x)), four,
         x});
  }
  for (std::size_t i = 0; i < par.size(); ++i)
    parts.push_back(
        {fmt::format("{} on par with {} within {}", par[i][0], par[i][1], within[i]), par[i], 0 - within[i]});
  require(!parts.empty(),
          "verdict: no claim is given; expected --better A B, --par A B, --more A B C D, --below A X or --above A X");
  return parts;
}

Table arm_table(const ClaimArms& arms, const std::vector<std::string>& compared) {
  Table table;
  table.column("arm", "arm").column("seeds", "seeds").column("mean", "mean", fixed(4));
  table.column("deviation", "sd", fixed(4)).data({"diverged"});
  for (const std::string& name : compared) {
    const ClaimArm& arm = arms.at(name);
    const Sample found = arm.sample();
    table.add(
        {name, found.count, found.mean, found.deviation(), Json::list({arm.diverged.begin(), arm.diverged.end()})});
  }
  return table;
}

/// Describes the interval of an undecided part: "..., a is between 0.0027 worse and 0.0427 better than b; ...".
std::string open_text(const JudgedPart& one) {
  const std::vector<std::string>& arms = one.part.arms;
  const bool two = arms.size() == 2;
  const auto end = [&](double x) {
    const std::string text = with_sign(x, 4);
    return text.substr(1) + (text[0] == '-' ? two ? " worse" : " smaller" : two ? " better" : " larger");
  };
  const std::string first = two ? arms[0] : fmt::format("the lead of {} over {}", arms[0], arms[1]),
                    second = two ? arms[1] : fmt::format("the lead of {} over {}", arms[2], arms[3]);
  const double half_width = *one.half_width();
  if (half_width == 0) return "the seeds of each arm agree, and the difference is exactly the bound";
  return fmt::format("with these seeds (95 %), {} is between {} and {} than {}; more seeds narrow the range", first,
                     end(one.value - half_width), end(one.value + half_width), second);
}

Table part_table(const std::vector<JudgedPart>& parts) {
  Table table;
  table.column("part", "part").text("difference").text("95 %").data({"value", "half_width", "bound"});
  table.column("verdict", "verdict");
  for (const JudgedPart& one : parts) {
    const std::optional<double> half_width = one.half_width();
    table.add({one.part.text, half_width ? with_sign(one.value, 4) : significant(4)(one.value),
               half_width ? fmt::format("± {:.4f}", *half_width) : "not tested", one.value, half_width, one.part.bound,
               name_of(one.verdict)});
  }
  return table;
}

/// Returns a line for each run that is not counted or that diverged, and for each part whose verdict needs an
/// explanation.
std::vector<std::string> notes_on(const Judgement& judged) {
  std::vector<std::string> notes;
  std::set<std::string> named;
  for (const auto& [name, arm] : judged.arms) notes.insert(notes.end(), arm.ignored.begin(), arm.ignored.end());
  for (const JudgedPart& one : judged.parts)
    for (const std::string& name : one.part.arms) {
      const ClaimArm& arm = judged.arms.at(name);
      if (!named.insert(name).second) continue;
      for (const Index seed : arm.diverged)
        notes.push_back(fmt::format("{}, seed {}: diverged, counted as {}", name, seed, arm.values.at(seed)));
    }
  for (const JudgedPart& one : judged.parts) {
    if (one.counted)
      notes.push_back(fmt::format(
          "{}: the seeds agree more closely than the number of test images allows; a deviation of {:.4f} is used",
          one.part.text, *one.counted));
    if (one.verdict == Verdict::undecided) notes.push_back(fmt::format("{}: {}", one.part.text, open_text(one)));
  }
  return notes;
}

/// Describes the further seeds that would decide an undecided claim.
std::string seeds_text(const std::vector<Index>& further, Index most) {
  constexpr const char* condition = "would decide, if means and deviations stay the same";
  if (further.empty()) return fmt::format("no number of seeds up to {} in each arm {}\n", most, condition);
  return fmt::format("{} in each arm {}: {}\n", counted(std::ssize(further), "further seed"), condition, few(further));
}

/// Throws Error if a name in a part belongs to several arms. find_arms() has renamed such arms to their directories.
void require_one_arm_each(const std::vector<Part>& parts, const std::vector<ComparedArm>& arms,
                          const std::string& source) {
  for (const Part& part : parts)
    for (const std::string& name : part.arms) {
      std::vector<std::string> named;
      for (const ComparedArm& arm : arms)
        if (arm.own_name() == name && arm.name != name) named.push_back(arm.name);
      require(
          named.empty(),
          "{}: {} is the name of {} arms with different settings or data: {}; name one of these; heed compare shows "
          "the differences",
          source, in_quotes(name), named.size(), fmt::join(named, ", "));
    }
}

/// Reads the values of the runs. From directories, uses only the seeds that all compared arms have.
ClaimValues read_values(const VerdictArguments& a, const std::vector<Part>& parts) {
  ClaimValues values{fmt::format("{}", fmt::join(a.given, " ")), a.less, a.test_images};
  if (a.table()) {
    require(a.figure.empty(),
            "verdict: --figure is only for runs; for a table, add --less if smaller values are better");
    values.arms = read_claim(a.given[0], a.claim);
    return values;
  }
  const std::string key = a.figure.empty() ? "test_accuracy" : a.figure;
  const FigureName& figure = *std::ranges::find(figure_names, key, &FigureName::key);
  require(!a.less, "verdict: --less is only for tables; for runs, --figure determines whether less is better");
  require(a.claim.empty(), "verdict: --claim is only for tables; a sweep is one claim");
  require(figure.share || a.test_images == 0, "verdict: --test-images is only for accuracies; --figure is {}",
          a.figure);
  values.less = !figure.share;
  const std::vector<ComparedArm> arms = find_arms(a.given);
  require_one_arm_each(parts, arms, values.source);
  values.arms = claim_arms(arms, figure);
  keep_common_seeds(values.arms, compared_arms(parts));
  return values;
}

/// Trains the compared arms with these seeds. Returns false if interrupted.
bool train_further(const VerdictArguments& a, const std::vector<std::string>& compared,
                   const std::vector<Index>& seeds) {
  use_threads(a.threads);
  std::vector<ComparedArm> arms = find_arms(a.given);
  std::erase_if(arms, [&](const ComparedArm& arm) { return std::ranges::count(compared, arm.name) == 0; });
  return train_seeds(arms, seeds, a.jobs, threads());
}

void print_json(const Judgement& judged, const VerdictArguments& a) {
  Json json = Json::object({{"verdict", name_of(judged.verdict())},
                            {"arms", arm_table(judged.arms, judged.compared).json()},
                            {"parts", part_table(judged.parts).json()},
                            {"notes", notes_on(judged)}});
  if (a.seeds > 0) {
    const std::vector<Index> further = judged.deciding_seeds(a.seeds);
    json["further_seeds"] = Json::list({further.begin(), further.end()});
  }
  std::cout << json.dump(2) << "\n";
}

void print(const Judgement& judged, const VerdictArguments& a) {
  if (!judged.compared.empty()) {
    arm_table(judged.arms, judged.compared).print(std::cout);
    std::cout << "\n";
  }
  part_table(judged.parts).print(std::cout);
  std::cout << "\n";
  for (const std::string& note : notes_on(judged)) std::cout << printable(note) << "\n";
  if (a.seeds > 0 && judged.verdict() == Verdict::undecided)
    std::cout << seeds_text(judged.deciding_seeds(a.seeds), a.seeds);
  std::cout << name_of(judged.verdict()) << "\n";
}

int status_of(Verdict verdict) {
  return verdict == Verdict::holds ? ok : verdict == Verdict::does_not_hold ? check_failed : undecided;
}

int verdict_command(const VerdictArguments& a) {
  const std::vector<Part> parts = parts_of(a);
  require(!a.run || !a.table(), "verdict: --run adds seeds to a sweep; expected its directory, not {}", a.given[0]);
  require(a.run || a.threads == 0, "verdict: --threads requires --run");
  Judgement judged = judge(read_values(a, parts), parts);
  const std::vector<Index> further = a.run ? judged.deciding_seeds(a.seeds) : std::vector<Index>{};
  if (!further.empty()) {
    if (!train_further(a, judged.compared, further)) {
      std::cerr << "interrupted and saved; repeat the command to continue\n";
      return interrupted;
    }
    judged = judge(read_values(a, parts), parts);
  }
  if (a.json)
    print_json(judged, a);
  else
    print(judged, a);
  return status_of(judged.verdict());
}

constexpr const char* verdict_help =
    "RUNS are directories of runs, such as the output of heed sweep: the arms have their names in the sweep, and the "
    "values are the --figure of finished runs. Or RUNS is a CSV table with a row for each run and the columns claim, "
    "arm, seed and value; a value is a test accuracy from 0 to 1, or a number of bits. The optional column images "
    "gives the number of test images of an accuracy; 'diverged' in the optional column state marks a diverged run, "
    "whose value is that of random guessing. All arms need the same three or more seeds; from directories, only the "
    "seeds that all compared arms have are used.\n\n"
    "With h the half-width of the 95 % interval of a - b (t s sqrt(1/n_a + 1/n_b), where s^2 is the pooled variance of "
    "the arms and, for accuracies on n images, at least p (1 - p) / n):\n"
    "  better by x      holds if a - b - h > x, does not hold if a - b + h < x, otherwise undecided\n"
    "  on par within x  holds if a - b - h > -x, does not hold if a - b + h < -x, otherwise undecided\n"
    "  more by x        better by x, with (a - b) - (c - d) for a - b, and s pooled over all four arms\n"
    "Counts, residuals and ranks are not tested statistically: --below and --above require every value of an arm to be "
    "below or above X, however many seeds it has. Options may be repeated: a claim of several parts holds if all do, "
    "and does not hold if one does not.\n\n"
    "--seeds N lists the fewest further seeds that would decide an undecided claim if means and deviations stayed the "
    "same, with at most N seeds in each arm; new runs may change means and deviations. --run trains these seeds as "
    "heed sweep does, and judges all runs together.\n\n"
    "Exit status: 0 holds; 1 does not hold; 4 undecided; 2 bad input; 130 interrupted.";

}  // namespace

void add_verdict(Command program) {
  static VerdictArguments a;
  Command command =
      program.command("verdict", "Judge a claim about arms by their runs: holds, does not hold, undecided");
  command.option("RUNS", &a.given, "directories of runs, such as a sweep's, or a table FILE.csv", {.required = true});
  command.option("--claim", &a.claim, "the claim, if a table has several", {.value = "NAME"});
  command.option(
      "--figure", &a.figure, "figure to test, for directories of runs; default: test_accuracy",
      {.value = "FIGURE", .one_of = {"test_accuracy", "test_loss", "validation_accuracy", "validation_loss"}});
  command.option("--better", &a.better, "A is better than B", {.value = "A B"});
  command.option("--par", &a.par, "A is on par with B, or better", {.value = "A B"});
  command.option("--more", &a.more, "A leads B by more than C leads D", {.value = "A B C D"});
  command.option("--below", &a.below, "every value of A is less than X", {.value = "A X"});
  command.option("--above", &a.above, "every value of A is more than X", {.value = "A X"});
  command.option(
      "--by", &a.by,
      "margin of --better and --more: one for all, or one for each, first for --better, then for --more; default: 0",
      {.value = "X", .range = {{0, 1e9}}});
  command.option("--within", &a.within, "tolerated difference of --par: one for all, or one for each",
                 {.value = "X", .range = {{0, 1e9}}});
  command.option("--less", &a.less, "smaller values of a table are better, such as bits or losses");
  command.option("--test-images", &a.test_images, "number of test images per accuracy; overrides the number in a table",
                 {.value = "N", .range = {{1, 1e9}}});
  command.option("--seeds", &a.seeds,
                 "list the further seeds that would decide the claim, with at most N seeds in each arm",
                 {.value = "N", .range = {{3, static_cast<double>(most_cells)}}});
  command.option("--run", &a.run, "train these seeds, and judge all runs together", {.needs = "--seeds"});
  command.option("--jobs", &a.jobs, "with --run: runs trained at the same time, which share the threads; default: 1",
                 {.value = "N", .range = {{1, max_threads}}, .needs = "--run"});
  add_threads(command, a.threads);
  command.option("--json", &a.json, "print JSON");
  command.footer(verdict_help);
  command.action([] { return verdict_command(a); });
}

}  // namespace heed::cli
