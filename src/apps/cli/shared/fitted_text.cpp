#include "fitted_text.h"

#include "progress_line.h"

#include "heed/base/split.h"

#include <algorithm>
#include <sstream>

namespace heed::cli {

namespace {

/// Layout of a line.
struct LineLayout {
  std::size_t lead;  ///< leading spaces
  std::size_t hang;  ///< start of the last text column; `lead` if there is one column

  explicit LineLayout(const std::string& text) : lead(std::min(text.find_first_not_of(' '), text.size())), hang(lead) {
    for (std::size_t gap = lead; (gap = text.find("  ", gap)) != text.npos;) {
      gap = std::min(text.find_first_not_of(' ', gap), text.size());
      if (gap < text.size()) hang = gap;
    }
  }
};

/// Returns the width of UTF-8 text in columns; bytes 10xxxxxx continue a character.
std::size_t text_width(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string fitted_line(const std::string& text, std::size_t columns) {
  if (text_width(text) <= columns) return text;
  const LineLayout line(text);
  const std::size_t hang = line.hang > columns * 2 / 3 ? line.lead : line.hang;
  std::string begin(hang, ' ');
  if (text.compare(hang, 2, "# ") == 0) begin += "# ";
  std::string done, current = text.substr(0, hang), word;
  bool fresh = true;  // the current line has no word yet
  for (std::istringstream words(text.substr(hang)); words >> word; fresh = false) {
    if (!fresh && text_width(current) + 1 + text_width(word) > columns) {
      done += current + "\n";
      current = begin;
      fresh = true;
    }
    current += (fresh ? "" : " ") + word;
  }
  return done + current;
}

}  // namespace

std::string fitted(const std::string& text) {
  const auto columns = static_cast<std::size_t>(std::clamp<Index>(terminal_columns(), 40, 100));
  std::string result;
  for (const std::string& line : split(text, '\n')) result += fitted_line(line, columns) + "\n";
  result.pop_back();
  return result;
}

std::string joined(const std::string& text) {
  std::string result;
  std::size_t hang = std::string::npos;  // indentation of lines that continue this line; npos: no line does
  for (const std::string& raw : split(text, '\n')) {
    const LineLayout line(raw);
    if (line.lead == hang && line.lead < raw.size() && line.hang == line.lead)
      result.back() = ' ', result += raw.substr(line.lead);
    else
      result += raw, hang = line.hang;
    if (raw.empty() || raw.ends_with(':')) hang = std::string::npos;
    result += '\n';
  }
  result.pop_back();
  return result;
}

}  // namespace heed::cli
