#include "heed/analysis/resident_memory.h"

#include <fstream>
#include <string>

namespace heed {

namespace {

/// Returns a size in bytes from /proc/self/status, which has lines such as "VmRSS:  1234 kB"; 0 if it lacks the key.
Index status_bytes(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with(key + ":")) return 1024 * std::stol(line.substr(key.size() + 1));
  return 0;
}

}  // namespace

Index resident_bytes() { return status_bytes("VmRSS"); }

Index peak_resident_bytes() { return status_bytes("VmHWM"); }

bool reset_peak_resident() {
  std::ofstream clear("/proc/self/clear_refs");
  return static_cast<bool>(clear << "5" << std::flush);
}

}  // namespace heed
