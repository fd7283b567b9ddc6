// Files beside the examples of a directory, counted for a warning.
#pragma once

#include "tree.h"

#include <map>

namespace heed::data {

/// Ignored files, by reason.
class LeftOut {
 public:
  explicit LeftOut(const TreeKind& kind) : kind_(kind) {}

  void add(const std::string& reason, const std::string& path);

  /// Adds a file with its ending as the reason.
  void add_other(const std::string& path);

  /// Adds the file top/path or, if it is a directory, all files below it. A link, or a directory that cannot be listed,
  /// counts as a file.
  void add_below(const std::string& reason, const std::filesystem::path& top, const std::string& path);

  /// Warns, e.g., "DIR: 3 files are not read: 2 .webp (cat/a.webp, cat/b.webp), 1 hidden (cat/.x)"; names at most 5
  /// files for each reason.
  void warn_of(const std::filesystem::path& where);

 private:
  const TreeKind& kind_;
  std::map<std::string, std::vector<std::string>> paths_;
  std::size_t count_ = 0;
  bool convertible_ = false;
};

}  // namespace heed::data
