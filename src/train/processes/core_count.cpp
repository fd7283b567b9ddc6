#include "heed/train/processes/core_count.h"

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
#include <fstream>
#include <limits>
#include <optional>
#include <thread>

namespace heed {

namespace {

std::string cores(int count) { return fmt::format("{} core{}", count, count == 1 ? "" : "s"); }

/// Returns the first number of OMP_NUM_THREADS, which may be a list for nested loops.
std::optional<int> asked_for() {
  const char* const text = std::getenv("OMP_NUM_THREADS");
  int count = 0;
  if (!text || std::from_chars(text, text + std::strlen(text), count).ec != std::errc() || count < 1) return {};
  return count;
}

/// Returns how many of `all` cores the process is bound to. Uses OpenMP's count: with OMP_PROC_BIND, OpenMP binds the
/// first thread to a single core.
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

/// Returns the CPU quota of the process's control groups: the minimum over its group and all parents.
double paid_cores(const std::string& root) {
  double least = std::numeric_limits<double>::infinity();
  const auto take = [&](double quota, double period) {
    if (quota > 0 && period > 0) least = std::min(least, quota / period);
  };
  const std::string groups = root + "/sys/fs/cgroup";
  std::string group;  // version 2: a line 0::/GROUP
  std::ifstream own(root + "/proc/self/cgroup");
  for (std::string line; std::getline(own, line);)
    if (line.starts_with("0::/")) group = line.substr(3);
  while (true) {
    double quota = 0, period = 0;  // "max", not a number, means no quota
    if (std::ifstream(groups + group + "/cpu.max") >> quota >> period) take(quota, period);
    if (group.empty()) break;
    group.erase(group.rfind('/'));
  }
  double quota = 0, period = 0;  // version 1
  if (std::ifstream(groups + "/cpu/cpu.cfs_quota_us") >> quota &&
      std::ifstream(groups + "/cpu/cpu.cfs_period_us") >> period)
    take(quota, period);
  return least;
}

}  // namespace

ThreadCount default_threads(const std::string& root) {
  if (const std::optional<int> asked = asked_for()) return {*asked, "OMP_NUM_THREADS"};
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency())), bound = bound_cores(all);
  const double paid = paid_cores(root);
  if (paid < bound)
    return {std::max(1, static_cast<int>(std::ceil(paid))), fmt::format("a quota of {:.2g} cores", paid)};
  return {bound, bound < all ? fmt::format("bound to {} of {}", bound, cores(all)) : cores(bound)};
}

}  // namespace heed
