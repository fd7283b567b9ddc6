#include "heed/analysis/claim_rows.h"

#include "heed/base/error.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/io/file.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

namespace heed {

namespace {

template <class T>
std::optional<T> number_of(const std::string& text) {
  T number{};
  const bool whole = parse_number(text, number);
  return whole && std::isfinite(static_cast<double>(number)) ? std::optional(number) : std::nullopt;
}

/// Returns a column's name in lower case, without spaces and control characters.
std::string plain_name(const std::string& name) {
  std::string plain;
  for (const char c : name)
    if (const auto u = static_cast<unsigned char>(c); u > ' ') plain += static_cast<char>(std::tolower(u));
  return plain;
}

// Maximum bytes of a table: enough for hundreds of thousands of runs, and read in less than a second.
constexpr std::uint64_t longest_table = 1 << 24;

class ClaimReader {
 public:
  explicit ClaimReader(const std::string& path)
      : path_(path), lines_(split_lines(read_text_file(path, longest_table))) {
    require(lines_.size() > 1, "{}: has no runs; expected a header with claim,arm,seed,value and a row for each run",
            path);
    names_ = split(lines_[0], ',');
    for (const char* needed : {"claim", "arm", "seed", "value"})
      require(has(needed), "{}:1: has no column '{}'; expected claim,arm,seed,value and others, found {}", path, needed,
              in_quotes(lines_[0]));
    require_plain_names();
    for (at_ = 1; at_ < lines_.size(); ++at_) {
      rows_.push_back(split(lines_[at_], ','));
      require(rows_.back().size() == names_.size(), "{}: has {}; expected {}, as in the first line", where(),
              counted(std::ssize(rows_.back()), "field"), names_.size());
    }
  }

  ClaimArms arms(std::string claim) {
    std::vector<std::string> claims;
    std::set<std::string> known;
    for (const std::vector<std::string>& row : rows_)
      if (const std::string& name = row[column("claim")]; known.insert(name).second) claims.push_back(name);
    require(!claim.empty() || claims.size() == 1, "{}: holds {} claims: {}; choose one with --claim", path_,
            claims.size(), quoted_list(claims));
    if (claim.empty()) claim = claims[0];
    require(known.contains(claim), "{}: unknown claim {}{}", path_, in_quotes(claim), suggestion(claim, claims));
    ClaimArms arms;
    for (at_ = 1; at_ < lines_.size(); ++at_)
      if (field("claim") == claim) add(arms);
    for (const auto& [name, arm] : arms)
      if (arm.images > 0) require_accuracies(arm, path_);
    return arms;
  }

 private:
  std::string where() const { return fmt::format("{}:{}", path_, at_ + 1); }

  /// Throws Error if a known column occurs twice, or if its name has spaces or capitals: the column would be ignored.
  void require_plain_names() const {
    for (const std::string known : {"claim", "arm", "seed", "value", "state", "images"})
      for (bool found = false; const std::string& name : names_) {
        if (plain_name(name) != known) continue;
        require(name == known, "{}:1: has a column {}; expected '{}'", path_, in_quotes(name), known);
        require(!std::exchange(found, true), "{}:1: has two columns '{}'; expected one", path_, known);
      }
  }

  bool has(const char* name) const { return std::find(names_.begin(), names_.end(), name) != names_.end(); }

  std::size_t column(const char* name) const {
    return static_cast<std::size_t>(std::find(names_.begin(), names_.end(), name) - names_.begin());
  }

  /// Returns a field of the current row; empty if the table lacks the column.
  std::string field(const char* name) const { return has(name) ? rows_[at_ - 1][column(name)] : ""; }

  void add(ClaimArms& arms) const {
    const std::string name = field("arm"), state = field("state"), images = field("images");
    const std::optional<Index> seed = number_of<Index>(field("seed"));
    require(!name.empty(), "{}: the arm has no name", where());
    require(seed && *seed >= 0, "{}: seed is {}; expected a whole number", where(), in_quotes(field("seed")));
    const std::optional<double> value = claim_number(field("value"));
    require(value.has_value(),
            "{}: value is {}; expected a number of at most {}; for a diverged run, give the value of random guessing "
            "and the state 'diverged'",
            where(), in_quotes(field("value")), largest_claim_number);
    require(state.empty() || state == "finished" || state == "diverged",
            "{}: state is {}; expected 'finished' or 'diverged'", where(), in_quotes(state));
    ClaimArm& arm = arms[name];
    require(arm.values.emplace(*seed, *value).second, "{}: arm {} has seed {} twice", where(), in_quotes(name), *seed);
    arm.lines[*seed] = static_cast<Index>(at_) + 1;
    if (state == "diverged") arm.diverged.push_back(*seed);
    const std::optional<Index> count = images.empty() ? 0 : number_of<Index>(images);
    require(images.empty() || (count && *count >= 1), "{}: images is {}; expected the number of test images, 1 or more",
            where(), in_quotes(images));
    const auto said = [](Index n) { return n == 0 ? "missing" : fmt::format("{}", n); };
    require(arm.values.size() == 1 || arm.images == *count,
            "{}: images is {}, but {} for another seed of {}; expected the same number for all seeds", where(),
            said(*count), said(arm.images), in_quotes(name));
    arm.images = *count;
  }

  std::string path_;
  std::vector<std::string> lines_, names_;
  std::vector<std::vector<std::string>> rows_;
  std::size_t at_ = 0;  ///< current line, from 0
};

}  // namespace

std::vector<Index> ClaimArm::seeds() const {
  std::vector<Index> seeds;
  for (const auto& [seed, value] : values) seeds.push_back(seed);
  return seeds;
}

Sample ClaimArm::sample() const {
  std::vector<double> numbers;
  for (const auto& [seed, value] : values) numbers.push_back(value);
  return sample_of(numbers);
}

void require_accuracies(const ClaimArm& arm, const std::string& path) {
  for (const auto& [seed, value] : arm.values)
    require(value >= 0 && value <= 1, "{}:{}: value is {}; expected an accuracy from 0 to 1, since images is given",
            path, arm.lines.at(seed), value);
}

std::optional<double> claim_number(const std::string& text) {
  const std::optional<double> number = number_of<double>(text);
  if (number && std::abs(*number) > largest_claim_number) return std::nullopt;
  return number == 0.0 ? std::optional(0.0) : number;  // no -0
}

ClaimArms read_claim(const std::string& path, std::string claim) { return ClaimReader(path).arms(std::move(claim)); }

}  // namespace heed
