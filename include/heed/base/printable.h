// Escapes of control characters in external text, such as file names, for a terminal.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// Returns the text with its control characters escaped: those of ASCII, and U+0080 to U+009F in UTF-8. "\x1b[31mred"
/// is printed literally instead of as a red word.
std::string printable(std::string_view text);

}  // namespace heed
