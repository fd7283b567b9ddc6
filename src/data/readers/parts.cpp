#include "parts.h"

#include "files.h"
#include "heed/base/suggest.h"

#include <algorithm>
#include <array>

namespace heed::data {

namespace {

namespace fs = std::filesystem;

/// Returns true if `name` is one of the usual names of the split's directory, in upper or lower case.
bool is_part_name(const std::string& name, Split split) {
  static const std::vector<std::string> names_of[] = {
      {"train", "training"}, {"val", "valid", "validation", "dev"}, {"test", "testing"}};
  return std::ranges::count(names_of[static_cast<std::size_t>(split)], lower(name)) > 0;
}

}  // namespace

bool is_hidden(const std::string& name) {
  static const std::vector<std::string> of_systems = {"thumbs.db", "ehthumbs.db", "desktop.ini",
                                                      "__macosx",  "@eadir",      "$recycle.bin",
                                                      "icon\r",    "lost+found",  "system volume information"};
  return name.starts_with('.') || std::ranges::count(of_systems, lower(name)) > 0;
}

std::vector<std::string> names_in(const fs::path& directory) {
  std::vector<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::sort(names.begin(), names.end());
  return names;
}

bool leads_to_directory(const fs::path& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::none && error != std::errc::too_many_symbolic_link_levels)
    throw fs::filesystem_error("status", path, error);
  return fs::is_directory(status);
}

std::vector<std::string> directories_in(const fs::path& directory) {
  std::vector<std::string> names = names_in(directory);
  std::erase_if(names,
                [&](const std::string& name) { return is_hidden(name) || !leads_to_directory(directory / name); });
  return names;
}

void require_no_broken_links(const fs::path& directory) {
  std::error_code error;
  for (const std::string& name : names_in(directory)) {
    const fs::path path = directory / name;
    if (is_hidden(name) || fs::exists(path, error)) continue;
    require(!fs::is_symlink(path, error), "{}: a broken link to {}; restore its target or remove the link",
            path.string(), in_quotes(fs::read_symlink(path, error).string()));
  }
}

std::optional<fs::path> part_in(const fs::path& root, Split split) {
  std::vector<std::string> found = directories_in(root);
  std::erase_if(found, [&](const std::string& name) { return !is_part_name(name, split); });
  require(found.size() <= 1, "{}: {} name the same split; expected one of them", root.string(), quoted_list(found));
  return found.empty() ? std::nullopt : std::optional(root / found[0]);
}

bool has_part(const fs::path& root, Split split) { return part_in(root, split).has_value(); }

std::vector<std::string> parts_in(const fs::path& directory) {
  std::vector<std::string> names = directories_in(directory);
  std::erase_if(names, [](const std::string& name) {
    return std::ranges::none_of(std::array{Split::train, Split::validation, Split::test},
                                [&](Split split) { return is_part_name(name, split); });
  });
  return names;
}

}  // namespace heed::data
