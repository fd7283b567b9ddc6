#include "heed/config/toml_document.h"

#include "heed/base/error.h"
#include "heed/io/file.h"

#include <algorithm>

namespace heed {

namespace {

/// The most bytes in a file: a thousand times what a configuration has, and a tenth of what toml++ can take in a
/// second.
constexpr std::uint64_t longest = 1 << 20;

/// Past the string that begins at `text[at]`: in one line or, behind three quotes, in several. A string that does not
/// end where it should takes the rest of its line or of the text.
std::size_t skip_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool lines = text.substr(at).starts_with(three);
  for (at += lines ? 3 : 1; at < text.size(); ++at) {
    if (quote == '"' && text[at] == '\\')
      ++at;
    else if (!lines && text[at] == '\n')
      return at;
    else if (!lines && text[at] == quote)
      return at + 1;
    else if (text.substr(at).starts_with(three)) {
      // Two more quotes may stand before those that end it.
      const std::size_t end = std::min(text.find_first_not_of(quote, at), text.size());
      return std::min(end, at + 5);
    }
  }
  return text.size();
}

/// Refuses what toml++ 3.3 does not survive: keys of so many parts that the tables within tables overflow the stack
/// when they are destroyed, and bytes beyond ASCII outside strings and comments, where TOML has no place for them.
void require_harmless(std::string_view text) {
  constexpr int most_parts = 16;
  constexpr std::string_view byte_order_mark = "\xef\xbb\xbf";
  int line = 1, parts = 1;
  for (std::size_t at = text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0; at < text.size();) {
    const char c = text[at];
    const auto refuse = [&](const std::string& reason) { throw NoToml{fmt::format(":{}", line), reason}; };
    if (c == '"' || c == '\'') {
      const std::size_t end = skip_string(text, at);
      line += static_cast<int>(std::count(text.begin() + at, text.begin() + end, '\n'));
      at = end;
      continue;
    }
    if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
      continue;
    }
    if (static_cast<unsigned char>(c) >= 0x80) refuse("a byte beyond ASCII outside strings and comments");
    if (c == '.') {
      if (++parts > most_parts) refuse(fmt::format("a key of more than {} parts", most_parts));
    } else if (std::string_view("\n=,[{").find(c) != std::string_view::npos) {
      parts = 1;
    }
    line += c == '\n';
    ++at;
  }
}

}  // namespace

toml::table parse_toml(std::string_view text) {
  require_harmless(text);
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    std::string reason(error.description());
    std::replace(reason.begin(), reason.end(), '\n', ' ');
    throw NoToml{fmt::format(":{}", error.source().begin.line), reason};
  } catch (const std::logic_error&) {
    throw NoToml{"", "a key or value is cut short"};
  }
}

toml::table parse_toml_file(const std::string& path) {
  try {
    return parse_toml(read_file(path, longest));
  } catch (const NoToml& error) {
    fail("{}{}: not valid TOML: {}", path, error.line, error.reason);
  }
}

}  // namespace heed
