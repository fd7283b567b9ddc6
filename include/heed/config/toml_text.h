// Formatting of values as TOML.
#pragma once

#include <string>

namespace heed {

/// Returns the shortest text that parses to the same number and is recognisable as a float.
std::string toml_text(double value);

/// Returns the text in double quotes, with escapes.
std::string toml_text(const std::string& value);

}  // namespace heed
