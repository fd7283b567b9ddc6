// Division of channels by their norm: hand calculations and extreme inputs; the tests of all mechanisms check gradients
// and counts.
#include "heed/kernels/sums/normalize.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using namespace heed;

namespace {

template <class T>
struct Result {
  std::vector<T> y, norms, dx;
};

/// Runs forward and backward for x [rows, columns] and dx, with rows `stride` apart in memory.
template <class T>
Result<T> run(ChannelNorm norm, Index rows, Index columns, const std::vector<T>& x, const std::vector<T>& dy,
              Index stride) {
  const auto size = static_cast<std::size_t>(rows * columns);
  Result<T> result{std::vector<T>(size), std::vector<T>(static_cast<std::size_t>(columns)),
                   std::vector<T>(static_cast<std::size_t>(rows * stride), T(9))};
  const Matrix<const T> mx(x.data(), rows, columns, stride);
  const Matrix<T> y(result.y.data(), rows, columns), dx(result.dx.data(), rows, columns, stride);
  kernels::normalize_channels(norm, mx, y, result.norms.data());
  kernels::normalize_channels_backward(norm, {mx, y, result.norms.data()}, Matrix(dy.data(), rows, columns),
                                       Update::assign, dx);
  return result;
}

template <class T>
void check_near(const std::vector<T>& got, const std::vector<T>& expected) {
  BOOST_REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    BOOST_TEST(std::abs(got[i] - expected[i]) <= T(1e-6) * std::max(T(1), std::abs(expected[i])),
               "element " << i << ": got " << got[i] << ", expected " << expected[i]);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(normalize)

// Columns (3, -1, 0) and (0, 3, 4) beside one that is skipped.
const std::vector<double> x{3, 0, 7, -1, 3, 7, 0, 4, 7}, dy{1, 0, 0, 1, 2, 0};

BOOST_AUTO_TEST_CASE(l1_by_hand) {
  const auto r = run(ChannelNorm::l1, 3, 2, x, dy, 3);
  check_near(r.norms, {4, 7});
  check_near(r.y, {0.75, 0, -0.25, 3.0 / 7, 0, 4.0 / 7});
  // <y, dy> = 0.75 and 3/7; sign(0) = 0; the third column of dx is unchanged.
  check_near(r.dx, {(1 - 0.75) / 4, 0, 9, 0.75 / 4, (1 - 3.0 / 7) / 7, 9, 2.0 / 4, -3.0 / 49, 9});
}

BOOST_AUTO_TEST_CASE(l2_by_hand) {
  const auto r = run(ChannelNorm::l2, 3, 2, x, dy, 3);
  const double root = std::sqrt(10.0);
  check_near(r.norms, {root, 5});
  check_near(r.y, {3 / root, 0, -1 / root, 0.6, 0, 0.8});
  // <y, dy> = 3 / root and 0.6
  check_near(r.dx, {(1 - 0.9) / root, 0, 9, 0.3 / root, (1 - 0.36) / 5, 9, 2 / root, -0.48 / 5, 9});
}

BOOST_AUTO_TEST_CASE(a_channel_below_the_least_norm_is_divided_by_a_constant) {
  for (const ChannelNorm norm : {ChannelNorm::l1, ChannelNorm::l2}) {
    const auto zero = run<float>(norm, 2, 1, {0, 0}, {3, -2}, 1);
    check_near(zero.y, {0, 0});
    check_near(zero.dx, {3e12f, -2e12f});
    const auto tiny = run<double>(norm, 2, 1, {1e-13, -2e-13}, {3, -2}, 1);
    check_near(tiny.y, {0.1, -0.2});
    check_near(tiny.dx, {3e12, -2e12});
  }
}

BOOST_AUTO_TEST_CASE(squares_that_are_no_floats) {
  const auto r = run<float>(ChannelNorm::l2, 2, 1, {3e25f, 4e25f}, {1, 0}, 1);
  check_near(r.y, {0.6f, 0.8f});
  BOOST_TEST(std::abs(r.dx[0] * 5e25f - 0.64f) < 1e-5f);
}

BOOST_AUTO_TEST_CASE(one_token_is_its_sign) {
  for (const ChannelNorm norm : {ChannelNorm::l1, ChannelNorm::l2}) {
    const auto r = run<float>(norm, 1, 3, {0.3f, -7e-5f, 1.1e9f}, {2, 3, 4}, 3);
    BOOST_TEST(r.y == (std::vector<float>{1, -1, 1}), boost::test_tools::per_element());
    BOOST_TEST(r.dx == (std::vector<float>{0, 0, 0}), boost::test_tools::per_element());
  }
}

// More columns than are summed at once, and accumulated gradients.
BOOST_AUTO_TEST_CASE(many_channels) {
  const Index rows = 5, columns = 131;
  std::vector<float> many(static_cast<std::size_t>(rows * columns)), gradient(many.size());
  for (std::size_t i = 0; i < many.size(); ++i)
    many[i] = static_cast<float>(std::sin(0.7 * static_cast<double>(i))), gradient[i] = std::cos(static_cast<float>(i));
  const auto r = run(ChannelNorm::l1, rows, columns, many, gradient, columns);
  std::vector<float> sums(static_cast<std::size_t>(columns), 1.0f), added = r.dx;
  for (std::size_t i = 0; i < many.size(); ++i) sums[i % static_cast<std::size_t>(columns)] -= std::abs(r.y[i]);
  for (const float sum : sums) BOOST_TEST(std::abs(sum) < 1e-6f);
  for (Index c = 0; c < columns; ++c) {
    const auto at = [=](Index i) { return static_cast<std::size_t>(i * columns + c); };
    double norm = 0, product = 0;
    for (Index i = 0; i < rows; ++i) norm += std::abs(many[at(i)]);
    for (Index i = 0; i < rows; ++i) product += many[at(i)] / norm * gradient[at(i)];
    for (Index i = 0; i < rows; ++i) {
      const double sign = many[at(i)] > 0 ? 1 : many[at(i)] < 0 ? -1 : 0;
      BOOST_TEST(std::abs(r.dx[at(i)] - (gradient[at(i)] - sign * product) / norm) < 1e-6);
    }
  }
  const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, columns); };
  kernels::normalize_channels_backward(ChannelNorm::l1, {matrix(many), matrix(r.y), r.norms.data()}, matrix(gradient),
                                       Update::accumulate, matrix(added));
  for (std::size_t i = 0; i < many.size(); ++i) BOOST_TEST(added[i] == 2 * r.dx[i]);
}

BOOST_AUTO_TEST_SUITE_END()
