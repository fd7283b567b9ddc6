#include "memory.h"

#include "heed/base/error.h"
#include "heed/train/processes/core_count.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace heed::cli {

namespace {

constexpr Index unlimited = std::numeric_limits<Index>::max();

/// Returns MemAvailable, including reclaimable file caches, in bytes.
Index machine(const std::string& root) {
  std::ifstream file(root + "/proc/meminfo");
  for (std::string word; file >> word;)
    if (Index kilobytes = 0; word == "MemAvailable:" && file >> kilobytes) return 1024 * kilobytes;
  return unlimited;
}

/// Returns the memory limit of a control group in bytes.
double limit_of_group(const std::string& group) {
  double bytes = 0;
  for (const char* const file : {"/memory.max", "/memory.limit_in_bytes"})  // of control groups version 2 and 1
    if (std::ifstream(group + file) >> bytes) return bytes;                 // otherwise "max", or no file
  return std::numeric_limits<double>::infinity();
}

Index control_groups(const std::string& root) {
  const double bytes = least_of_groups(root, "memory", limit_of_group);
  return bytes < static_cast<double>(unlimited) ? static_cast<Index>(bytes) : unlimited;
}

Index limit(int resource) {
  rlimit found{};
  const bool limited = getrlimit(static_cast<__rlimit_resource>(resource), &found) == 0 &&
                       found.rlim_cur < static_cast<rlim_t>(unlimited);
  return limited ? static_cast<Index>(found.rlim_cur) : unlimited;
}

}  // namespace

Index available_memory(const std::string& root) {
  return std::min({machine(root), control_groups(root), limit(RLIMIT_DATA), limit(RLIMIT_AS)});
}

// A thread's stack also holds its thread_local buffers of products, 1.2 MB. Stack overflow ends a program by a signal,
// without a message.
void require_stack() {
  constexpr Index least = Index{2} << 20;
  const Index stack = limit(RLIMIT_STACK);
  require(stack >= least, "the stack is limited to {} bytes; expected {} or more: ulimit -s {}", stack, least,
          least / 1024);
}

void limit_memory() {
#ifdef HEED_SANITIZED
  return;  // sanitizers reserve terabytes of mostly unused addresses
#endif
  rlimit data{};
  if (getrlimit(RLIMIT_DATA, &data) != 0) return;
  data.rlim_cur = std::min(data.rlim_max, static_cast<rlim_t>(available_memory()));
  setrlimit(RLIMIT_DATA, &data);
}

}  // namespace heed::cli
