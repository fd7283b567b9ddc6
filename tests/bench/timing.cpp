// Timing of calls: the number of calls, and quantiles of their times.
#include "heed/bench/timing.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace heed::bench;

BOOST_AUTO_TEST_SUITE(bench_timing)

// The quantiles of n sorted times have the indices n / 10, n / 2 and 9 n / 10.
BOOST_AUTO_TEST_CASE(quantiles_of_times) {
  Times times;
  for (int i = 1; i <= 20; ++i) times.sorted.push_back(i);
  BOOST_TEST(times.best() == 1);
  BOOST_TEST(times.low() == 3);
  BOOST_TEST(times.median() == 11);
  BOOST_TEST(times.high() == 19);
  for (const double time : {Times{{7}}.best(), Times{{7}}.low(), Times{{7}}.median(), Times{{7}}.high()})
    BOOST_TEST(time == 7);
}

// Three calls warm up; at least five are timed, each followed by the action between them.
BOOST_AUTO_TEST_CASE(at_least_five_calls_are_timed) {
  int calls = 0, between = 0;
  const Times times = time_calls(
      0, 0, [&] { ++calls; }, [&] { ++between; });
  BOOST_TEST(calls == 3 + 5);
  BOOST_TEST(between == 5);
  BOOST_TEST(times.sorted.size() == 5u);
  BOOST_TEST(std::is_sorted(times.sorted.begin(), times.sorted.end()));
}

// Calls of at least 2 us are timed in groups of about 100 us; times are per call, not per group.
BOOST_AUTO_TEST_CASE(short_calls_are_timed_in_groups) {
  constexpr double least = 2e-6;
  int calls = 0, group = 0;
  Times times;
  // A warm-up call that is preempted seems long, so there are several attempts.
  for (int attempt = 0; attempt < 5 && group < 2; ++attempt) {
    calls = 0;
    times = time_calls(0, 1e-4, [&] {
      ++calls;
      const Clock::time_point start = Clock::now();
      while (seconds_since(start) < least) continue;
    });
    group = (calls - 3) / 5;
  }
  BOOST_TEST(times.sorted.size() == 5u);
  BOOST_TEST((calls - 3) % 5 == 0);
  BOOST_TEST(group > 1);
  BOOST_TEST(group <= 51);
  BOOST_TEST(times.best() >= least);
  BOOST_TEST(times.best() < least * group);
}

// Before each call the processes agree on whether to continue: one may need more calls although another has enough.
BOOST_AUTO_TEST_CASE(processes_continue_together) {
  const auto timed = [](std::size_t least) {
    std::vector<bool> wishes;
    const Times times = time_calls(
        0, 0, [] {}, [] {},
        [&](bool more) {
          wishes.push_back(more);
          return more || wishes.size() < least;
        });
    BOOST_TEST(std::count(wishes.begin(), wishes.end(), true) == 3 + 5);
    return times.sorted.size();
  };
  BOOST_TEST(timed(0) == 5u);
  BOOST_TEST(timed(12) == 8u);  // three warm-up calls; the twelfth answer ends the timing
}

BOOST_AUTO_TEST_SUITE_END()
