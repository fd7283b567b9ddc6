// Check for valid UTF-8.
#pragma once

#include <string_view>

namespace heed {

/// Returns true if each byte above 127 is part of a UTF-8 sequence.
bool is_utf8(std::string_view text);

}  // namespace heed
