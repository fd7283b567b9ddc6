// Reading TOML documents.
#pragma once

#include "toml_value.h"

#include <string>
#include <string_view>

namespace heed {

/// Parse error of a TOML text: the line, such as ":12", empty if unknown; and the reason.
struct NoToml {
  std::string line, reason;
};

/// Parses a text. Throws NoToml.
toml::table parse_toml(std::string_view text);

/// Parses a file. Throws Error that names the file and the line.
toml::table parse_toml_file(const std::string& path);

/// Parses "optim.lr=1e-3" into a document. A value that is not TOML is taken as text.
toml::table parse_set(const std::string& set);

}  // namespace heed
