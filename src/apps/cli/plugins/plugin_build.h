// What this program was built with, which plugins must be built with, too.
#pragma once

#include <string>
#include <vector>

namespace heed::cli {

/// How a plugin is compiled for this program.
struct PluginBuild {
  std::string version;           ///< of heed
  std::string compiler_version;  ///< what a plugin finds as __VERSION__
  std::string headers;           ///< checksum of heed's public headers, eight digits
  std::string compiler, flags;   ///< as a command line has them
};

const PluginBuild& program_build();

/// The checksum of the headers in DIRECTORY/heed.
std::string checksum_of_headers(const std::string& directory);

}  // namespace heed::cli
