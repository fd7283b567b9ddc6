// A text in parts.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace heed {

/// What stands before, between and behind the separators: one part more than there are of them, some perhaps empty.
inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

}  // namespace heed
