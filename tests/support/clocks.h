// CPU time, for tests of asymptotic cost.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace heed::test {

/// Returns the CPU time of f() in clocks: the minimum of three runs.
template <class F>
double least_clocks(const F& f) {
  std::clock_t least = std::numeric_limits<std::clock_t>::max();
  for (int repetition = 0; repetition < 3; ++repetition) {
    const std::clock_t start = std::clock();
    f();
    least = std::min(least, std::clock() - start);
  }
  return static_cast<double>(least);
}

}  // namespace heed::test
