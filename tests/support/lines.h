// Line-wise comparison of output.
#pragma once

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

namespace heed::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns the words of wrapped text, separated by single spaces.
inline std::string in_one_line(const std::string& text) {
  std::string line;
  std::istringstream in(text);
  for (std::string word; in >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// Returns the number of columns of a line of text: bytes that do not continue a character.
inline int columns_of(const std::string& line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace heed::test
