// How many cores this process may use.
#pragma once

#include <string>

namespace heed {

/// A number of threads, and why it is that.
struct ThreadCount {
  int count;
  std::string reason;
};

/// Returns OMP_NUM_THREADS if it is set, else the number of cores that the process may use: those that it is bound to
/// (taskset), or so many as the quota of its container pays for, rounded up. `root` is the root of the file system.
ThreadCount default_threads(const std::string& root = "");

}  // namespace heed
