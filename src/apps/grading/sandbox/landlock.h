// The files that a confined process can access, if the kernel has Landlock (Linux 5.13).
#pragma once

#include <string>
#include <vector>

namespace heed {

/// Rules by which files may be read in some places, programs among them started, and written in others; none beyond
/// these. Paths that do not exist are left out.
class FileRules {
 public:
  FileRules(const std::vector<std::string>& readable, const std::vector<std::string>& writable);
  FileRules(const FileRules&) = delete;
  FileRules& operator=(const FileRules&) = delete;
  ~FileRules();

  /// For this process and all that it starts, for good; does nothing where the kernel has no Landlock. False if the
  /// kernel refuses. Allocates nothing.
  bool install() const;

 private:
  int rules_ = -1;
};

}  // namespace heed
