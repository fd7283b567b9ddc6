#include "heed/config/installed.h"

#include "heed/base/error.h"
#include "heed/base/suggest.h"

#include <cerrno>

#include <algorithm>

namespace heed {

namespace {

std::vector<std::filesystem::path>& places() {
  static std::vector<std::filesystem::path> list;
  return list;
}

}  // namespace

std::filesystem::path program_file() {
  std::error_code error;
  const std::filesystem::path running = std::filesystem::read_symlink("/proc/self/exe", error);
  const bool is_loader = running.filename().string().starts_with("ld-linux");
  return is_loader ? std::filesystem::absolute(program_invocation_name, error) : running;
}

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

std::string find_base(const std::string& file, const std::string& base) {
  const std::filesystem::path beside = std::filesystem::path(file).parent_path() / base;
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside.string() : find_installed(base);
}

void require_base(const std::string& where, const std::string& base) {
  std::error_code error;
  require(std::filesystem::exists(base, error),
          "{}: base {} does not exist beside the file, in the working directory or among the files installed with heed",
          where, in_quotes(base));
}

}  // namespace heed
