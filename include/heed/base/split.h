// Splitting of text.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// Returns the n + 1 parts, possibly empty, between the n separators in the text.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

/// Returns the lines of a text, without the LF or CR LF that ends each.
inline std::vector<std::string> split_lines(std::string_view text) {
  std::vector<std::string> lines = split(text, '\n');
  if (lines.back().empty()) lines.pop_back();
  for (std::string& line : lines)
    if (line.ends_with('\r')) line.pop_back();
  return lines;
}

}  // namespace heed
