#include "plain_text.h"

#include "heed/base/error.h"
#include "heed/io/file.h"
#include "heed/io/utf8.h"

namespace heed::cli {

namespace {

void append_utf8(std::string& text, unsigned code) {
  const auto tail = [&](int bits) { text += static_cast<char>(0x80 | ((code >> bits) & 0x3f)); };
  if (code < 0x80) {
    text += static_cast<char>(code);
  } else if (code < 0x800) {
    text += static_cast<char>(0xc0 | (code >> 6)), tail(0);
  } else if (code < 0x10000) {
    text += static_cast<char>(0xe0 | (code >> 12)), tail(6), tail(0);
  } else {
    text += static_cast<char>(0xf0 | (code >> 18)), tail(12), tail(6), tail(0);
  }
}

/// Converts UTF-16 to UTF-8; `high` is the index of the more significant byte in a unit, 1 for little-endian. An
/// unpaired surrogate becomes U+FFFD.
std::string from_utf16(const std::string& bytes, std::size_t high) {
  std::string text;
  unsigned lead = 0;  // the first half of a pair whose second half is expected, or 0
  constexpr unsigned replacement = 0xfffd;
  for (std::size_t i = 0; i + 1 < bytes.size(); i += 2) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned>(static_cast<unsigned char>(bytes[i + at])); };
    const unsigned unit = byte(high) << 8 | byte(1 - high);
    const bool first = unit >= 0xd800 && unit < 0xdc00, second = unit >= 0xdc00 && unit < 0xe000;
    if (lead != 0 && !second) append_utf8(text, replacement);
    if (second)
      append_utf8(text, lead != 0 ? 0x10000 + ((lead & 0x3ff) << 10) + (unit & 0x3ff) : replacement);
    else if (!first)
      append_utf8(text, unit);
    lead = first ? unit : 0;
  }
  if (lead != 0) append_utf8(text, replacement);
  return text;
}

}  // namespace

std::string plain_text(const std::string& bytes) {
  std::string text = bytes;
  const auto zero_at = [&](std::size_t i) { return bytes.size() > 3 && bytes[i] == 0 && bytes[i + 2] == 0; };
  if (bytes.starts_with("\xff\xfe") || zero_at(1))
    text = from_utf16(bytes, 1);
  else if (bytes.starts_with("\xfe\xff") || zero_at(0))
    text = from_utf16(bytes, 0);
  require(text.find('\0') == std::string::npos, "it is not a text file: it has a zero byte");
  if (!is_utf8(text)) {
    std::string latin;
    for (const char c : text) append_utf8(latin, static_cast<unsigned char>(c));
    text = latin;
  }
  if (text.starts_with(utf8_mark)) text.erase(0, utf8_mark.size());
  std::string lines;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] != '\r')
      lines += text[i];
    else if (i + 1 == text.size() || text[i + 1] != '\n')
      lines += '\n';
  return lines;
}

}  // namespace heed::cli
