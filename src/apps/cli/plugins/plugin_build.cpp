// Compiler flags of this build and the checksum of its headers, from a file that make rewrites if they change.
#include "plugin_compile.h"

#include "heed/io/file.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <filesystem>
#include <vector>

namespace heed::cli {

namespace {

struct Texts {
  const char *compiler, *flags, *last_flags, *headers;
};
constexpr Texts built = {
#include <plugin_build.inc>
};

}  // namespace

const PluginBuild& program_build() {
  static const PluginBuild build{HEED_VERSION, __VERSION__, built.headers, built.compiler,
                                 fmt::format("{} -O3 {}", built.flags, built.last_flags)};
  return build;
}

std::string checksum_of_headers(const std::string& directory) {
  namespace fs = std::filesystem;
  std::vector<std::string> headers;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(fs::path(directory) / "heed"))
    if (entry.path().extension() == ".h") headers.push_back(entry.path().string());
  std::ranges::sort(headers);
  uLong checksum = crc32(0, nullptr, 0);
  for (const std::string& header : headers) {
    const std::string text = read_file(header);
    checksum = crc32_z(checksum, reinterpret_cast<const Bytef*>(text.data()), text.size());
  }
  return fmt::format("{:08x}", checksum);
}

}  // namespace heed::cli
