// Combining marks in UTF-8.
#pragma once

#include <string_view>

namespace heed {

/// Returns the code point of the combining mark, U+0300 to U+036F, that begins at byte `at` of the text, or 0 if none
/// does.
inline unsigned combining_mark_at(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  if ((byte(at) & 0xfe) != 0xcc || (byte(at + 1) & 0xc0) != 0x80) return 0;
  const unsigned code = (byte(at) & 0x1f) << 6 | (byte(at + 1) & 0x3f);
  return code <= 0x36f ? code : 0;
}

}  // namespace heed
