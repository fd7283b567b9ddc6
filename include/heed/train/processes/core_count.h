// Number of cores available to this process.
#pragma once

#include <string>

namespace heed {

/// A number of threads and its origin.
struct ThreadCount {
  int count;
  std::string reason;
};

/// Returns OMP_NUM_THREADS if it is set. Otherwise returns the number of available cores: those the process is bound to
/// (taskset), or the CPU quota of its container, rounded up, if smaller. `root` is the file system's root.
ThreadCount default_threads(const std::string& root = "");

}  // namespace heed
