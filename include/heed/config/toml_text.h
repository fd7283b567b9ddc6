// Formatting of values as TOML.
#pragma once

#include <string>

namespace heed {

struct Sides;

/// Returns the shortest text that parses to the same number and is recognisable as a float.
std::string toml_text(double value);

/// Returns the text in double quotes, with escapes.
std::string toml_text(const std::string& value);

/// Returns 16 for sides of 16 x 16, and [16, 8] for a height of 16 and a width of 8.
std::string toml_text(const Sides& sides);

}  // namespace heed
