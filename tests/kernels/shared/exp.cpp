// The kernels' exp and log(1 + x), compared with the C library's in double.
#include "heed/kernels/shared/exp.h"

#include <boost/test/unit_test.hpp>

#include <limits>

using namespace heed;

BOOST_AUTO_TEST_SUITE(exponentials)

BOOST_AUTO_TEST_CASE(exp_of_float) {
  for (double x = -87.3; x < 88.3; x += 0.00173) {
    const float in = static_cast<float>(x);
    const double expected = std::exp(static_cast<double>(in));
    BOOST_REQUIRE_SMALL(kernels::exp(in) / expected - 1, 2.5e-7 + 6e-9 * std::abs(x));
  }
  BOOST_TEST(kernels::exp(0.0f) == 1.0f);
}

BOOST_AUTO_TEST_CASE(exp_at_the_ends) {
  const float infinity = std::numeric_limits<float>::infinity();
  BOOST_TEST(kernels::exp(-infinity) == 0.0f);
  BOOST_TEST(kernels::exp(-1e30f) == 0.0f);
  BOOST_TEST(kernels::exp(-104.0f) == 0.0f);
  BOOST_TEST(kernels::exp(infinity) == infinity);
  BOOST_TEST(kernels::exp(1e30f) == infinity);
  BOOST_TEST(kernels::exp(89.0f) == infinity);
  BOOST_TEST(std::isnan(kernels::exp(std::numeric_limits<float>::quiet_NaN())));
}

BOOST_AUTO_TEST_CASE(log_1_plus_of_float) {
  for (double x = 0; x <= 1; x += 1e-4) {
    const float in = static_cast<float>(x);
    const double expected = std::log1p(static_cast<double>(in));
    BOOST_REQUIRE_SMALL(kernels::log_1_plus(in) - expected, 3e-7 * expected);
  }
  for (const float x : {1e-30f, 1e-10f, 1e-7f})
    BOOST_TEST(std::abs(kernels::log_1_plus(x) - std::log1p(static_cast<double>(x))) <= 3e-7 * static_cast<double>(x));
}

BOOST_AUTO_TEST_SUITE_END()
