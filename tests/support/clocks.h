// Processor time, for tests of how an effort grows.
#pragma once

#include <algorithm>
#include <ctime>
#include <limits>

namespace heed::test {

/// The processor time that f() takes, in clocks: the least of three times.
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
