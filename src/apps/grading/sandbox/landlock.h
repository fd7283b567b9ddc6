// Files that a confined process can access, if the kernel has Landlock (Linux 5.13).
#pragma once

#include "heed/io/file.h"

#include <string>
#include <vector>

namespace heed {

/// Rules that allow reading files and starting programs below the paths `readable` and `writable`, writing below
/// `writable`, and nothing else. Nonexistent paths are ignored.
class FileRules {
 public:
  FileRules(const std::vector<std::string>& readable, const std::vector<std::string>& writable);

  /// Applies the rules permanently to this process and its children; does nothing if the kernel lacks Landlock. Returns
  /// false if the kernel refuses. Allocates nothing.
  bool install() const;

 private:
  Descriptor rules_;
};

}  // namespace heed
