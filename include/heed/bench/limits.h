// The host's limits, measured, as a reference for the speed of kernels and models.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heed::bench {

/// A measured rate in `unit`, and its range.
struct Measurement {
  std::string name, unit;
  double rate = 0, low = 0, high = 0;
};

/// The resources that limit a computation.
enum class Resource { multiply_add, gemm, l1, clamp, exp, l1_cache, l2_cache, l3_cache, memory };

/// Return the name in tables and JSON, such as "gemm", and the unit of the rate, such as "GF/s".
const char* name_of(Resource resource);
const char* unit_of(Resource resource);

/// Returns the size of a data cache (l1_cache to l3_cache) in bytes: as Linux reports it, or else a typical value.
double cache_bytes(Resource cache);

/// The highest rate among many short repetitions, with the range from the median to the highest rate.
struct Limit {
  Resource of;
  int threads;
  Measurement measured;
  std::string variant, how;
};

/// Limits of the host, for one thread and for all.
class Limits {
 public:
  /// Measures each limit for about `seconds`, in several turns; calls progress(text) before each measurement. Throws
  /// Error in a build without SIMD.
  Limits(double seconds, const std::function<void(const std::string&)>& progress);

  const std::vector<Limit>& all() const { return limits_; }

  /// Return the minimum seconds in which one thread, or all, can execute `amount` operations, process `amount`
  /// elements, or move `amount` bytes.
  double seconds(Resource resource, double amount) const { return amount / 1e9 / rate(resource, 1, ""); }
  double seconds_on_all(Resource resource, double amount) const;

  /// Returns the minimum seconds in which one thread can read `bytes`.
  double seconds_to_read(Resource memory, double bytes) const { return bytes / 1e9 / rate(memory, 1, "read"); }

  /// Returns the fastest memory that holds `bytes`.
  Resource memory_for(double bytes) const;

 private:
  /// Returns the best rate of a variant, or of all variants if `variant` is empty.
  double rate(Resource resource, int threads, const std::string& variant) const;

  void keep_better(Limit limit);

  std::vector<Limit> limits_;
};

}  // namespace heed::bench
