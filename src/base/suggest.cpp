#include "heed/base/suggest.h"

#include "heed/base/printable.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <span>
#include <utility>

namespace heed {
namespace {

// Returns the optimal string alignment distance: insertions, deletions, substitutions and swaps of neighbours cost 1
// each. row[j] holds the distance between a[0, i) and b[0, j).
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before, above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before = above;
    above = row;
  }
  return above[b.size()];
}

// Returns initials: "learning_rate" -> "lr"; "" for a single word.
std::string initials(std::string_view words) {
  std::string letters;
  bool start = true;
  for (const char c : words) {
    if (c == '_' || c == '-')
      start = true;
    else if (std::exchange(start, false))
      letters += c;
  }
  return letters.size() < 2 ? "" : letters;
}

bool contains(std::string_view text, std::string_view part) {
  return part.size() >= 3 && text.find(part) != std::string_view::npos;
}

// Returns the distance between two words: the number of edits, but at most one if a word is the other's initials, and
// at most two if one contains the other and the contained word has three letters or more.
std::size_t distance(std::string_view word, std::string_view candidate) {
  std::size_t edits = edit_distance(word, candidate);
  if (word == initials(candidate) || initials(word) == candidate) edits = std::min<std::size_t>(edits, 1);
  if (contains(word, candidate) || contains(candidate, word)) edits = std::min<std::size_t>(edits, 2);
  return edits;
}

}  // namespace

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  // Long input is not a misspelling, and the time and memory for the distance are proportional to its length.
  if (word.empty() || word.size() > 80) return "";
  std::string lower(word);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));

  std::string best;
  // At most a third of the letters, or two if that is more, may differ, and at least one must agree.
  std::size_t least = std::max<std::size_t>(2, lower.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(lower, candidate);
    if (edits < least && edits < std::max(lower.size(), candidate.size())) {
      least = edits;
      best = candidate;
    }
  }
  return best;
}

std::string suggestion(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string guess = nearest(word, candidates);
  if (!guess.empty()) return fmt::format("; did you mean '{}'?", guess);
  std::string all;
  for (const std::string& candidate : candidates) all += (all.empty() ? "; expected one of " : ", ") + candidate;
  return all;
}

std::string_view beginning(std::string_view text, std::size_t longest) {
  std::size_t end = std::min(text.size(), longest);
  while (end > 0 && end < text.size() && (text[end] & 0xc0) == 0x80) --end;  // the start of a UTF-8 character
  return text.substr(0, end);
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 80;
  return fmt::format("'{}{}'", printable(beginning(text, longest)), text.size() > longest ? "..." : "");
}

std::string counted(std::int64_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string quoted_list(const std::vector<std::string>& names) {
  constexpr std::size_t shown = 4;
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) text += (i > 0 ? ", " : "") + in_quotes(names[i]);
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

std::string first_names(const std::vector<std::string>& names, std::size_t most) {
  const std::size_t count = std::min(most, names.size());
  const std::span<const std::string> some(names.data(), count);
  return fmt::format("{}{}", fmt::join(some, ", "), names.size() > count ? ", ..." : "");
}

}  // namespace heed
