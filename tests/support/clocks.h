// CPU time, for tests of asymptotic cost.
#pragma once

#include <ctime>

namespace heed::test {

/// Returns the CPU time of f() in seconds. Compare it with a bound that is far from both the expected time and the time
/// with the fault: the processor may be slow or shared.
template <class F>
double cpu_seconds(const F& f) {
  const std::clock_t start = std::clock();
  f();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

}  // namespace heed::test
