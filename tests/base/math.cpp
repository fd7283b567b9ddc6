// heed's own exp, log and similar functions: their errors, compared with long double, are at most those stated in
// base/math.h; at the ends of their ranges they agree with the C library's; every build gives the same bits.
#include "heed/base/math.h"

#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <bit>
#include <cmath>
#include <limits>
#include <vector>

using namespace heed;

namespace {

constexpr Index trials = 200'000;
constexpr double unit = 0x1p-53;
constexpr double infinity = std::numeric_limits<double>::infinity();

/// Returns the greatest relative error of f(x) in units of 2^-53, for x = at(u) with random u in [0, 1).
template <class F, class Exact, class At>
double worst_error(const F& f, const Exact& exact, const At& at) {
  double worst = 0;
  for (Index i = 0; i < trials; ++i) {
    const double x = at(RandomStream(5).uniform(i));
    const long double expected = exact(static_cast<long double>(x));
    const double error = static_cast<double>(std::abs((f(x) - expected) / expected)) / unit;
    if (!(error <= worst)) worst = error;
  }
  return worst;
}

auto between(double low, double high) {
  return [=](double share) { return low + (high - low) * share; };
}
/// Returns a function from [0, 1] to numbers of every magnitude between two positive ones.
auto of_any_size(double low, double high) {
  return [=](double share) { return std::exp(std::log(low) + (std::log(high) - std::log(low)) * share); };
}

/// Returns true if a and b are equal and have the same sign, also as zeros or infinities, are both NaN, or are finite
/// and within 8 * 2^-53 of each other, relative to b.
bool agree(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  if (a == b) return std::signbit(a) == std::signbit(b);
  return std::isfinite(b) && std::abs(a - b) <= 8 * unit * std::abs(b);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(own_math)

BOOST_AUTO_TEST_CASE(errors_are_as_stated) {
  using L = long double;
  const auto exp = [](double x) { return math::exp(x); };
  const auto log = [](double x) { return math::log(x); };
  const auto log1p = [](double x) { return math::log1p(x); };
  const auto sin = [](double x) { return math::sin(x); };
  const auto cos = [](double x) { return math::cos(x); };
  const auto tanh = [](double x) { return math::tanh(x); };
  for (const double reach : {1.0, 700.0})
    BOOST_TEST(worst_error(
                   exp, [](L x) { return std::exp(x); }, between(-reach, reach)) <= 2);
  for (const auto& numbers : {of_any_size(1e-300, 1e300), of_any_size(0.999, 1.001), of_any_size(0.5, 2)})
    BOOST_TEST(worst_error(
                   log, [](L x) { return std::log(x); }, numbers) <= 2);
  BOOST_TEST(worst_error(
                 log1p, [](L x) { return std::log1p(x); }, between(-0.99, 10)) <= 4);
  BOOST_TEST(worst_error(
                 log1p, [](L x) { return std::log1p(x); }, of_any_size(1e-20, 1)) <= 4);
  for (const double reach : {1.0, 10.0, 1e6}) {
    BOOST_TEST(worst_error(
                   sin, [](L x) { return std::sin(x); }, between(-reach, reach)) <= 2);
    BOOST_TEST(worst_error(
                   cos, [](L x) { return std::cos(x); }, between(-reach, reach)) <= 2);
  }
  BOOST_TEST(worst_error(
                 cos, [](L x) { return std::cos(x); }, between(1.57, 1.571)) <= 2);  // near the zero pi / 2
  BOOST_TEST(worst_error(
                 tanh, [](L x) { return std::tanh(x); }, of_any_size(1e-10, 20)) <= 4);
  BOOST_TEST(worst_error(
                 tanh, [](L x) { return std::tanh(x); }, between(-0.7, -0.4)) <= 4);
  for (const double y : {0.5, -0.25, 2.5, 3.0, 100.0, -1.0, 0.001, 700.0}) {
    const double most = 2 + std::abs(y) * std::log(2.5) / 8;
    BOOST_TEST(worst_error([=](double x) { return math::pow(x, y); },
                           [=](L x) { return std::pow(x, static_cast<L>(y)); }, between(0.4, 2.5)) <= most);
  }
}

BOOST_AUTO_TEST_CASE(ends_of_ranges_are_those_of_the_c_library) {
  const std::vector<double> ends{0.0, -0.0,  1.0,    -1.0,   2.0,     -2.0,      0.5,    -0.5,   3.0,   -3.0, infinity,
                                 NAN, 1e308, -1e308, 5e-324, -1e-310, -infinity, -745.1, -746.0, 709.7, 709.9};
  for (const double x : ends) {
    BOOST_TEST_CONTEXT("x = " << x) {
      BOOST_TEST(agree(math::exp(x), std::exp(x)));
      BOOST_TEST(agree(math::log(x), std::log(x)));
      BOOST_TEST(agree(math::log1p(x), std::log1p(x)));
      BOOST_TEST(agree(math::tanh(x), std::tanh(x)));
      if (std::abs(x) <= 1e6 || !std::isfinite(x)) {
        BOOST_TEST(agree(math::sin(x), std::sin(x)));
        BOOST_TEST(agree(math::cos(x), std::cos(x)));
      }
      for (const double y : ends) BOOST_TEST(agree(math::pow(x, y), std::pow(x, y)), "y = " << y);
    }
  }
  for (double x = 709.78; x < 709.79; x += 1e-6) BOOST_TEST_REQUIRE(agree(math::exp(x), std::exp(x)));
}

// In float, more than 999 of 1000 results are correctly rounded; the others have relative errors of at most 1.2e-7.
BOOST_AUTO_TEST_CASE(floats_are_rounded_once) {
  Index rounded = 0;
  for (Index i = 0; i < trials; ++i) {
    const float x = static_cast<float>(RandomStream(6).uniform(i, -80, 80));
    const float expected = static_cast<float>(std::exp(static_cast<long double>(x)));
    rounded += math::exp(x) == expected;
    BOOST_TEST_REQUIRE(std::abs(math::exp(x) - expected) <= 1.2e-7f * expected);
  }
  BOOST_TEST(rounded > trials - trials / 1000);
}

BOOST_AUTO_TEST_CASE(bits_are_the_same_in_every_build) {
  std::uint64_t hash = 0;
  const auto add = [&](double x) { hash = mix_bits(hash ^ std::bit_cast<std::uint64_t>(x)); };
  for (Index i = 0; i < 20'000; ++i) {
    const double x = RandomStream(7).uniform(i, -30, 30), size = std::abs(x), y = RandomStream(8).uniform(i, -3, 3);
    for (const double value : {math::exp(x), math::log(size), math::log1p(size), math::sin(x), math::cos(x),
                               math::tanh(y), math::pow(size, y), RandomStream(9).normal(i)})
      add(value);
  }
  BOOST_TEST(hash == 8081206462410924596u);
}

BOOST_AUTO_TEST_SUITE_END()
