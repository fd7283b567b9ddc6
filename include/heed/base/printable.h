// Text from elsewhere, such as the name of a file, on its way to a terminal.
#pragma once

#include <string>
#include <string_view>

namespace heed {

/// The text with its control characters escaped, which a terminal would obey: those of ASCII, and U+0080 to U+009F in
/// UTF-8. "\x1b[31mred" in place of the red word.
std::string printable(std::string_view text);

}  // namespace heed
