// Number of cores available to this process, and limits of its control groups.
#pragma once

#include <functional>
#include <string>

namespace heed {

/// Maximum number of threads, above the core count of most hosts. A system may be unable to start many more.
inline constexpr int max_threads = 1024;

/// A number of threads and its origin.
struct ThreadCount {
  int count;
  std::string reason;
};

/// Returns the first number of OMP_NUM_THREADS, which may be a list, if it is set and not empty. Otherwise returns the
/// number of available cores: the number of cores that the process is bound to (taskset) or, if it is smaller, the CPU
/// quota of its container, rounded up. `root` is the file system's root. Throws Error if OMP_NUM_THREADS does not begin
/// with a number from 1 to max_threads.
ThreadCount default_threads(const std::string& root = "");

/// Returns the minimum of limit(directory) over the process's control groups for `controller`, such as "cpu", and all
/// their parent groups. `root` is the file system's root.
double least_of_groups(const std::string& root, const std::string& controller,
                       const std::function<double(const std::string&)>& limit);

}  // namespace heed
