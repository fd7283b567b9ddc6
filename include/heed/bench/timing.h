// Timing of calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace heed::bench {

/// The clock of all measurements.
using Clock = std::chrono::steady_clock;

/// Returns the seconds since `start`.
inline double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Seconds per call, ascending.
struct Times {
  std::vector<double> sorted;

  double best() const { return sorted.front(); }
  double median() const { return sorted[sorted.size() / 2]; }
  /// Return the first and the ninth decile of the times.
  double low() const { return sorted[sorted.size() / 10]; }
  double high() const { return sorted[sorted.size() * 9 / 10]; }
};

/// Times calls of f, at least five, for about `seconds` after a warm-up. Calls shorter than `shortest` seconds are
/// timed in groups. Calls between() after each group, outside the timed interval. If several processes run f together,
/// agreed(more), which decides whether to continue, must return the same in each of them, and `shortest` must be 0.
template <class F, class Between = decltype([] {}), class Agreed = decltype([](bool more) { return more; })>
Times time_calls(double seconds, double shortest, const F& f, const Between& between = {}, const Agreed& agreed = {}) {
  const Clock::time_point warm_up = Clock::now();
  double call = 0;
  for (int i = 0; i < 3 && agreed(i < 2 || seconds_since(warm_up) < 3); ++i) {
    const Clock::time_point start = Clock::now();
    f();
    call = seconds_since(start);
  }
  const int calls = call < shortest ? static_cast<int>(std::min(shortest / std::max(call, 1e-8), 1e6)) + 1 : 1;
  Times times;
  const Clock::time_point start = Clock::now();
  while (agreed(seconds_since(start) < seconds || times.sorted.size() < 5)) {
    const Clock::time_point sample = Clock::now();
    for (int i = 0; i < calls; ++i) f();
    times.sorted.push_back(seconds_since(sample) / calls);
    between();
  }
  std::sort(times.sorted.begin(), times.sorted.end());
  return times;
}

}  // namespace heed::bench
