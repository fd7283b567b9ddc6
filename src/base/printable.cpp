#include "heed/base/printable.h"

#include <fmt/format.h>

#include <algorithm>

namespace heed {

namespace {

/// Returns the length in bytes of the control character at the start of the text, 0 if there is none.
std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  return text.size() > 1 && byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0 ? 2 : 0;
}

}  // namespace

std::string printable(std::string_view text) {
  std::string result;
  while (!text.empty()) {
    const std::size_t control = control_bytes(text), taken = std::max<std::size_t>(control, 1);
    for (const char c : text.substr(0, taken))
      result += control > 0 ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
    text.remove_prefix(taken);
  }
  return result;
}

std::string shell_word(const std::string& text) {
  const bool plain =
      text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./=,:+@") ==
      std::string::npos;
  if (plain && !text.empty()) return text;
  std::string quoted, escaped;
  for (const char c : text) {
    quoted += c == '\'' ? "'\\''" : std::string(1, c);
    escaped += c == '\'' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  }
  return printable(text) == text ? "'" + quoted + "'" : "$'" + printable(escaped) + "'";
}

}  // namespace heed
