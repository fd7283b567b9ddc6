#include "heed/train/processes/core_count.h"

#include "heed/base/error.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>

#if defined(_OPENMP)
#include <omp.h>
#elif defined(__linux__)
#include <sched.h>
#endif

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

namespace heed {

namespace {

std::string cores(int count) { return counted(count, "core"); }

/// Returns the first number of OMP_NUM_THREADS, which may be a list for nested loops. Throws Error for other text.
std::optional<int> asked_for() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  if (!text || !*text) return {};
  int count = 0;
  const char* const end = text + std::strlen(text);
  const auto [rest, error] = std::from_chars(text, end, count);
  require(error == std::errc() && (rest == end || *rest == ',') && count >= 1 && count <= max_threads,
          "OMP_NUM_THREADS: '{}'; expected a whole number from 1 to {}", text, max_threads);
  return count;
}

/// Returns how many of `all` cores the process is bound to. Uses OpenMP's count if possible, since with OMP_PROC_BIND
/// OpenMP binds the first thread to a single core.
int bound_cores(int all) {
#if defined(_OPENMP)
  return std::min(all, omp_get_num_procs());
#elif defined(__linux__)
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? std::min(all, std::max(1, CPU_COUNT(&set))) : all;
#else
  return all;
#endif
}

/// Returns the CPU quota of a control group in cores; infinity if it has none.
double quota_of(const std::string& group) {
  double quota = 0, period = 0;                          // "max" and -1 mean no quota
  std::ifstream(group + "/cpu.max") >> quota >> period;  // version 2
  if (period == 0) {                                     // version 1
    std::ifstream(group + "/cpu.cfs_quota_us") >> quota;
    std::ifstream(group + "/cpu.cfs_period_us") >> period;
  }
  return quota > 0 && period > 0 ? quota / period : std::numeric_limits<double>::infinity();
}

}  // namespace

double least_of_groups(const std::string& root, const std::string& controller,
                       const std::function<double(const std::string&)>& limit) {
  const std::string mount = root + "/sys/fs/cgroup";
  double least = std::min(limit(mount), limit(mount + "/" + controller));
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);) {
    // A line is ID:CONTROLLERS:GROUP; in version 2, CONTROLLERS is empty.
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && ("," + controllers + ",").find("," + controller + ",") == std::string::npos) continue;
    const std::string hierarchy = mount + (controllers.empty() ? "" : "/" + controller);
    for (std::filesystem::path group = line.substr(second + 1); group.has_relative_path(); group = group.parent_path())
      least = std::min(least, limit(hierarchy + group.string()));
  }
  return least;
}

ThreadCount default_threads(const std::string& root) {
  if (const std::optional<int> asked = asked_for()) return {*asked, "OMP_NUM_THREADS"};
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency())), bound = bound_cores(all);
  const double paid = least_of_groups(root, "cpu", quota_of);
  if (paid < bound)
    return {std::max(1, static_cast<int>(std::ceil(paid))), fmt::format("a quota of {:.4g} cores", paid)};
  return {bound, bound < all ? fmt::format("bound to {} of {}", bound, cores(all)) : cores(bound)};
}

}  // namespace heed
