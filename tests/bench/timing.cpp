// Timing of calls: the number of calls, and quantiles of their times.
#include "heed/bench/timing.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace heed::bench;

BOOST_AUTO_TEST_SUITE(bench_timing)

// The median is the first value that is not below half of the others; deciles are those of ten parts.
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

BOOST_AUTO_TEST_SUITE_END()
