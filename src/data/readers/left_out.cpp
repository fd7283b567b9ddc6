#include "left_out.h"

#include "files.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"

#include <algorithm>

namespace heed::data {

void LeftOut::add(const std::string& reason, const std::string& path) {
  paths_[reason].push_back(path);
  ++count_;
}

void LeftOut::add_other(const std::string& path) {
  const std::string ending = ending_of(path);
  convertible_ = convertible_ || std::ranges::count(kind_.convertible, ending) > 0;
  add(ending.empty() ? "without an extension" : ending, path);
}

void LeftOut::add_below(const std::string& reason, const std::filesystem::path& top, const std::string& path) {
  std::error_code error;
  std::filesystem::directory_iterator entries;
  const bool link = std::filesystem::is_symlink(top / path, error);
  if (!link) entries = std::filesystem::directory_iterator(top / path, error);
  if (link || error) return add(reason, path);
  for (const std::filesystem::directory_entry& entry : entries)
    add_below(reason, top, path + "/" + entry.path().filename().string());
}

void LeftOut::warn_of(const std::filesystem::path& where) {
  if (count_ == 0) return;
  std::string text;
  for (auto& [reason, paths] : paths_) {
    std::ranges::sort(paths);
    text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", paths.size(), reason, first_names(paths, 5));
  }
  warn(fmt::format("{}: {} file{} not read: {}{}", where.string(), count_, count_ == 1 ? " is" : "s are", text,
                   convertible_ ? kind_.remedy : ""));
}

}  // namespace heed::data
