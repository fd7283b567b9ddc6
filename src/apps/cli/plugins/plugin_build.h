// The build of this program, which plugins must match.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// Compiler and flags of a plugin for this program.
struct PluginBuild {
  std::string version;           ///< heed's version
  std::string compiler_version;  ///< __VERSION__ of the compiler
  std::string headers;           ///< checksum of heed's public headers, eight digits
  std::string compiler, flags;   ///< as on a command line
};

const PluginBuild& program_build();

/// The checksum of the headers in DIRECTORY/heed.
std::string checksum_of_headers(const std::string& directory);

}  // namespace heed::cli
