// Reading of integers and markers in the bytes of an image file.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>

namespace heed::data {

using Bytes = std::span<const std::uint8_t>;

/// Reads an integer of `count` bytes at offset `at`, the lowest byte first if `little`; 0 if it extends beyond the end.
inline std::size_t number_at(Bytes bytes, std::size_t at, std::size_t count, bool little) {
  std::size_t value = 0;
  if (at > bytes.size() || bytes.size() - at < count) return 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | bytes[at + (little ? count - 1 - i : i)];
  return value;
}

/// Returns true if the bytes from offset `at` on begin with `text`.
inline bool begins_with(Bytes bytes, std::size_t at, std::string_view text) {
  return at <= bytes.size() && bytes.size() - at >= text.size() &&
         std::memcmp(bytes.data() + at, text.data(), text.size()) == 0;
}

}  // namespace heed::data
