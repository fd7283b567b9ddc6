#include "memory.h"

#include "heed/base/error.h"

#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

namespace heed::cli {

namespace {

constexpr Index unlimited = std::numeric_limits<Index>::max();

/// Returns MemAvailable, including reclaimable file caches, in bytes.
Index machine() {
  std::ifstream file("/proc/meminfo");
  for (std::string word; file >> word;)
    if (Index kilobytes = 0; word == "MemAvailable:" && file >> kilobytes) return 1024 * kilobytes;
  return unlimited;
}

/// Returns memory.max of the control group (version 2), whose line in /proc/self/cgroup is "0::/its/path".
Index control_group() {
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    if (!line.starts_with("0::")) continue;
    std::ifstream file("/sys/fs/cgroup" + line.substr(3) + "/memory.max");
    if (Index bytes = 0; file >> bytes) return bytes;  // otherwise "max"
  }
  return unlimited;
}

Index limit(int resource) {
  rlimit found{};
  const bool limited = getrlimit(static_cast<__rlimit_resource>(resource), &found) == 0 &&
                       found.rlim_cur < static_cast<rlim_t>(unlimited);
  return limited ? static_cast<Index>(found.rlim_cur) : unlimited;
}

}  // namespace

Index available_memory() { return std::min({machine(), control_group(), limit(RLIMIT_DATA), limit(RLIMIT_AS)}); }

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
