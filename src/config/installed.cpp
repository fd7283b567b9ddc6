#include "heed/config/installed.h"

#include <algorithm>

namespace heed {

namespace {

std::vector<std::filesystem::path>& places() {
  static std::vector<std::filesystem::path> list;
  return list;
}

}  // namespace

void set_installed_places(std::vector<std::filesystem::path> list) { places() = std::move(list); }

std::vector<std::filesystem::path> search_places(const std::string& path) {
  std::vector<std::filesystem::path> list{path};
  if (path.empty() || list[0].is_absolute()) return list;
  for (const std::filesystem::path& place : places()) list.push_back(place / path);
  return list;
}

std::string find_installed(const std::string& path) {
  const std::vector<std::filesystem::path> list = search_places(path);
  std::error_code error;
  const auto found =
      std::find_if(list.begin(), list.end(), [&](const auto& place) { return std::filesystem::exists(place, error); });
  return found != list.end() ? found->string() : path;
}

}  // namespace heed
