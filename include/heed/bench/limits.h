// The limits of this machine, measured in place, to compare the speed of kernels and models with.
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace heed::bench {

/// A rate that was measured, in `unit`, and the range in which it varied.
struct Measurement {
  std::string name, unit;
  double rate = 0, low = 0, high = 0;
};

/// The resources that limit a computation.
enum class Resource { multiply_add, gemm, l1, clamp, exp, l1_cache, l2_cache, l3_cache, memory };

/// "gemm", as tables and JSON name it, and what its rate counts: "GF/s".
const char* name_of(Resource resource);
const char* unit_of(Resource resource);

/// Bytes of the data cache of a level, Resource::l1_cache to l3_cache: as Linux tells it, or what is common.
double cache_bytes(Resource cache);

/// The largest rate of many short repetitions; its spread begins at their median.
struct Limit {
  Resource of;
  int threads;
  Measurement measured;
  std::string variant, how;
};

/// Limits of this machine, by one thread and by all.
class Limits {
 public:
  /// Measures each for about `seconds`; before each, tells its name. Throws Error in a build without SIMD,
  /// which has no vector instructions to find limits with.
  Limits(double seconds, const std::function<void(const std::string&)>& progress);

  const std::vector<Limit>& all() const { return limits_; }

  /// The fewest seconds in which one thread, or all of them, can do so many operations, or move so many bytes.
  double seconds(Resource resource, double amount) const { return amount / 1e9 / rate(resource, 1, ""); }
  double seconds_on_all(Resource resource, double amount) const;

  /// The same for bytes to be read.
  double seconds_to_read(Resource memory, double bytes) const { return bytes / 1e9 / rate(memory, 1, "read"); }

  /// The nearest memory that holds so many bytes.
  Resource memory_for(double bytes) const;

 private:
  /// The best of a variant, or of all.
  double rate(Resource resource, int threads, const std::string& variant) const;

  void keep_better(Limit limit);

  std::vector<Limit> limits_;
};

}  // namespace heed::bench
