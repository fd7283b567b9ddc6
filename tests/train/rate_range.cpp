// The learning-rate range test: its end, and whether the loss falls by more than its scatter.
#include "heed/train/rate_range.h"

#include "support/training.h"

#include <algorithm>
#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns 100 steps whose smoothed loss falls from 10 by 0.05 a step until step `least`, then rises by 0.05 a step. In
/// steps [from, to), losses are alternately 3 below and 3 above the smoothed loss; in all others, equal to it.
std::vector<RatePoint> scattered(int least, int from, int to) {
  std::vector<RatePoint> points;
  for (int i = 0; i < 100; ++i) {
    const double smoothed = 10 - 0.05 * (i <= least ? i : 2 * least - i);
    points.push_back({std::exp(0.1 * i), smoothed + (i < from || i >= to ? 0 : i % 2 ? 3 : -3), smoothed});
  }
  return points;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(train_rate_range)

BOOST_AUTO_TEST_CASE(rates_of_a_test) {
  BOOST_TEST(RateRange().from == 1e-7);
  BOOST_TEST(RateRange().to == 10);
  BOOST_TEST(RateRange().steps == 200);
  BOOST_TEST((RateAdvice{.steepest = 0.02, .least = 0.5}.suggested()) == 0.02);
  BOOST_TEST((RateAdvice{.steepest = 0.02, .least = 0.1}.suggested()) == 0.01);
}

// A test ends at the first smoothed loss above four times the minimum so far.
BOOST_AUTO_TEST_CASE(a_test_ends_at_four_times_the_minimum) {
  const Workshop workshop(32, 10);
  Experiment x = workshop.experiment();
  x.data.validation = 0;
  const RateTest test = test_rates(x, {1e-2, 1e30, 60});
  BOOST_TEST(test.diverged);
  BOOST_REQUIRE(test.points.size() > 2u);
  double least = test.points[0].smoothed;
  for (const RatePoint& point : test.points) {
    least = std::min(least, point.smoothed);
    BOOST_TEST((point.smoothed > 4 * least) == (&point == &test.points.back()));
  }
}

// A minimum at step 20 is 0.775 below the mean of the first ten losses. Scatter in 28 of the first 50 steps counts: its
// root mean square is 2.2, so the minimum would have to be at least 1.8 below. Later scatter does not count.
BOOST_AUTO_TEST_CASE(the_scatter_of_the_first_half_counts_after_the_minimum) {
  BOOST_TEST(!advice({}));
  BOOST_TEST(!advice(scattered(20, 22, 50)));
  BOOST_TEST(advice(scattered(20, 50, 100)).has_value());
}

// A minimum at step 99 is 4.7 below the mean of the first ten losses. With a root mean square of 8.5, the minimum would
// have to be at least 6.8 below.
BOOST_AUTO_TEST_CASE(the_scatter_up_to_a_late_minimum_counts) {
  std::vector<RatePoint> late = scattered(99, 50, 100);
  for (RatePoint& point : late) point.loss = point.smoothed + 4 * (point.loss - point.smoothed);
  BOOST_TEST(!advice(late));  // root mean square 8.5: at least 6.8 below
  BOOST_TEST(advice(scattered(99, 100, 100)).has_value());
}

BOOST_AUTO_TEST_SUITE_END()
