// What is printed, line by line.
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

/// The words of a text that was broken into lines, a space between them.
inline std::string in_one_line(const std::string& text) {
  std::string line;
  std::istringstream in(text);
  for (std::string word; in >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// Columns that a line of text takes: bytes that do not continue a character.
inline int columns_of(const std::string& line) {
  return static_cast<int>(
      std::count_if(line.begin(), line.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

}  // namespace heed::test
