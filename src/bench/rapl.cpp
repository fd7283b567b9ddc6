#include "heed/bench/rapl.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

namespace heed {

namespace {

/// Returns the first word of a file, or nothing with the reason in errno.
std::optional<std::string> read_word(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::string word;
  if (file >> word) return word;
  return {};
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const std::optional<std::string> word = read_word(path);
  if (!word || word->empty() || !std::all_of(word->begin(), word->end(), [](char c) { return c >= '0' && c <= '9'; }))
    return {};
  return std::strtoull(word->c_str(), nullptr, 10);
}

/// Returns the names of the zones' directories in order, those of intel-rapl before those of intel-rapl-mmio.
std::vector<std::string> zones_below(const std::string& root) {
  std::vector<std::string> zones;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(root, error)) {
    const std::string name = entry.path().filename();
    if (name.starts_with("intel-rapl:") || name.starts_with("intel-rapl-mmio:")) zones.push_back(name);
  }
  std::sort(zones.begin(), zones.end(), [](const std::string& a, const std::string& b) {
    const auto key = [](const std::string& name) { return std::pair(name.starts_with("intel-rapl-mmio"), name); };
    return key(a) < key(b);
  });
  return zones;
}

}  // namespace

PackageEnergy::PackageEnergy(const std::string& root) {
  std::vector<std::string> packages;
  for (const std::string& zone : zones_below(root)) {
    const std::string directory = root + "/" + zone, path = directory + "/energy_uj";
    const std::string name = read_word(directory + "/name").value_or("");
    if (!name.starts_with("package") || std::find(packages.begin(), packages.end(), name) != packages.end()) continue;
    packages.push_back(name);
    const std::optional<std::uint64_t> range = read_number(directory + "/max_energy_range_uj");
    const std::optional<std::uint64_t> now = read_number(path);
    if (!now) {
      const int reason = errno;
      unavailable_ =
          fmt::format("{} cannot be read{}", path, reason != 0 ? std::string(": ") + std::strerror(reason) : "");
      if (reason == EACCES) unavailable_ += " (by default, Linux lets only root read it)";
      break;
    }
    counters_.push_back({path, range.value_or(0), *now});
  }
  if (unavailable_.empty() && counters_.empty())
    unavailable_ = fmt::format("{} has no RAPL counter of a processor package", root);
  if (!unavailable_.empty()) counters_.clear();
}

void PackageEnergy::update() {
  for (Counter& counter : counters_) {
    const std::optional<std::uint64_t> now = read_number(counter.path);
    if (!now || (*now < counter.last && counter.range == 0)) {
      unavailable_ = fmt::format("{} {}", counter.path, now ? "decreased" : "became unreadable");
      counters_.clear();
      return;
    }
    // A counter that wrapped around has counted up to its range and then from 0.
    microjoules_ += *now >= counter.last ? *now - counter.last : counter.range - counter.last + *now;
    counter.last = *now;
  }
}

std::string PackageEnergy::report() {
  update();
  return unavailable_.empty() ? fmt::format("{:.1f} J", joules()) : "unavailable: " + unavailable_;
}

}  // namespace heed
