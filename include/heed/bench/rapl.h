// Energy that the processor packages take, as Linux measures it: the running average power limit (RAPL) counters under
// /sys/class/powercap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// Energy of all packages since it was made. A counter is a zone "intel-rapl:N" whose name begins with "package" (AMD's
/// are called so too); zones inside a package, the whole platform's, and a second interface to a package already
/// counted (intel-rapl-mmio) are left out.
class PackageEnergy {
 public:
  /// Counters below `root`.
  explicit PackageEnergy(const std::string& root = "/sys/class/powercap");

  /// Why there is nothing to measure; empty if there is.
  const std::string& unavailable() const { return unavailable_; }

  /// Reads the counters. They wrap around (max_energy_range_uj), after about an hour at full load: call this more
  /// often.
  void update();

  /// Joules up to the last update().
  double joules() const { return static_cast<double>(microjoules_) / 1e6; }

  /// "123.4 J", or "unavailable: " and why; reads the counters first.
  std::string report();

 private:
  struct Counter {
    std::string path;
    std::uint64_t range = 0, last = 0;
  };
  std::vector<Counter> counters_;
  std::uint64_t microjoules_ = 0;
  std::string unavailable_;
};

}  // namespace heed
