// Reading TOML documents.
#pragma once

#include "toml_value.h"

#include <string>
#include <string_view>

namespace heed {

/// Why a text is not TOML, and where: ":12", or nothing.
struct NoToml {
  std::string line, reason;
};

/// Throws NoToml.
toml::table parse_toml(std::string_view text);

/// Throws Error, which names the file and the line.
toml::table parse_toml_file(const std::string& path);

/// "optim.lr=1e-3" as the document it stands for. A value that is not TOML is taken as text.
toml::table parse_set(const std::string& set);

}  // namespace heed
