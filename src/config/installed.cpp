#include "heed/config/installed.h"

namespace heed {

namespace {

std::vector<std::filesystem::path>& places() {
  static std::vector<std::filesystem::path> list;
  return list;
}

}  // namespace

void set_installed_places(std::vector<std::filesystem::path> list) { places() = std::move(list); }

std::string find_installed(const std::string& path) {
  std::error_code error;
  if (path.empty() || std::filesystem::path(path).is_absolute() || std::filesystem::exists(path, error)) return path;
  for (const std::filesystem::path& place : places())
    if (std::filesystem::exists(place / path, error)) return (place / path).string();
  return path;
}

}  // namespace heed
