// Escaping of control characters in external text, such as file names, for output to a terminal, and quoting for the
// shell.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// Returns the text with its control characters escaped: those of ASCII, and U+0080 to U+009F in UTF-8. For example, an
/// escape sequence for red text is printed as the characters `\x1b[31m`.
std::string printable(std::string_view text);

/// Returns the text as one word for the shell, quoted if necessary; control characters are quoted for bash.
std::string shell_word(const std::string& text);

}  // namespace heed
