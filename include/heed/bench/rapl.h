// Energy consumption of the processor packages, from Linux's running average power limit (RAPL) counters under
// /sys/class/powercap.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// Energy of all packages since construction. Counters are zones "intel-rapl:N" (also on AMD) or "intel-rapl-mmio:N"
/// whose file `name` begins with "package", one per package. Zones inside a package and the zone of the whole platform
/// are omitted.
class PackageEnergy {
 public:
  /// Uses the counters below `root`.
  explicit PackageEnergy(const std::string& root = "/sys/class/powercap");

  /// Returns the reason why energy cannot be measured; empty if it can.
  const std::string& unavailable() const { return unavailable_; }

  /// Reads the counters. Call this every minute or two: at full load, a counter wraps around (max_energy_range_uj)
  /// after minutes to an hour, depending on the CPU.
  void update();

  /// Returns the joules up to the last update().
  double joules() const { return static_cast<double>(microjoules_) / 1e6; }

  /// Reads the counters and returns "123.4 J", or "unavailable: " and the reason.
  std::string report();

 private:
  /// A package's counter: its file, the value at which it wraps around, and the last value.
  struct Counter {
    std::string path;
    std::uint64_t range = 0, last = 0;
  };
  std::vector<Counter> counters_;
  std::uint64_t microjoules_ = 0;
  std::string unavailable_;
};

}  // namespace heed
