// TOML documents, and why a text is none.
#pragma once

#include "heed/config/toml_value.h"

#include <string>
#include <string_view>

namespace heed {

/// Why a text is no TOML, and where: ":12", or nothing.
struct NoToml {
  std::string line, reason;
};

/// Throws NoToml.
toml::table parse_toml(std::string_view text);

/// Throws Error, which names the file and the line.
toml::table parse_toml_file(const std::string& path);

}  // namespace heed
