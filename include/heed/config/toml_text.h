// Values as TOML text.
#pragma once

#include <string>

namespace heed {

/// Shortest text that reads back as the same number, recognisable as a float.
std::string toml_text(double value);

/// In double quotes, with escapes.
std::string toml_text(const std::string& value);

}  // namespace heed
