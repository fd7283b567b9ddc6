// The point-wise functions compared with their definitions in long double, even beyond the range of exp, and their
// derivatives with finite differences.
#include "heed/kernels/elements/pointwise.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <vector>

using namespace heed;

namespace {

constexpr Pointwise all[] = {Pointwise::relu,     Pointwise::relu2, Pointwise::gelu,   Pointwise::softplus,
                             Pointwise::identity, Pointwise::relu6, Pointwise::sigmoid};

/// Computes phi(x) by the definition in long double, where exp(1e4) is finite.
long double defined(Pointwise phi, long double x) {
  const long double above = std::max(x, 0.0L);
  switch (phi) {
    case Pointwise::relu:
      return above;
    case Pointwise::relu2:
      return above * above;
    case Pointwise::gelu:
      return x * std::erfc(-x / std::sqrt(2.0L)) / 2;
    case Pointwise::softplus:
      return x > 40 ? x + std::exp(-x) : std::log1p(std::exp(x));
    case Pointwise::identity:
      return x;
    case Pointwise::relu6:
      return std::min(above, 6.0L);
    case Pointwise::sigmoid:
      return 1 / (1 + std::exp(-x));
  }
  return 0;
}

/// Returns points of both signs, from 1e-7 to 1e4 in magnitude, except the kinks at 0 and 6.
std::vector<double> points() {
  std::vector<double> points;
  for (const double x :
       {1e-7, 1e-3, 0.25, 0.5, 1.0, 2.0, 3.0, 5.0, 5.99, 6.01, 8.0, 15.0, 20.5, 30.0, 50.0, 80.0, 200.0, 1000.0, 1e4})
    points.push_back(x), points.push_back(-x);
  return points;
}

template <class T>
T forward(Pointwise phi, double x) {
  const T in = static_cast<T>(x);
  T y(0);
  kernels::pointwise_forward(phi, 1, &in, &y);
  return y;
}
template <class T>
T derivative(Pointwise phi, double x) {
  const T in = static_cast<T>(x);
  T dy(1);
  kernels::pointwise_backward(phi, 1, &in, &dy, &dy);
  return dy;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pointwise_kernels)

// Errors are relative, except for gelu, whose left tail is a difference (kernels/elements/activation.h).
BOOST_AUTO_TEST_CASE(values) {
  for (const Pointwise phi : all)
    for (const double x : points()) {
      const auto expected = static_cast<double>(defined(phi, x));
      const auto exact = forward<double>(phi, x);
      const auto rounded = forward<float>(phi, x);
      const double unit = phi == Pointwise::gelu ? std::max(1.0, std::abs(x)) : std::abs(expected);
      BOOST_TEST(std::abs(exact - expected) <= 1e-14 * unit,
                 "phi " << static_cast<int>(phi) << " at " << x << ": got " << exact << ", expected " << expected);
      // A float exp near 1e-20 has a relative error of 1e-6 because its argument is rounded; below 1e-38 it underflows.
      BOOST_TEST(
          std::abs(static_cast<double>(rounded) - expected) <= 1e-5 * unit + 1e-37,
          "phi " << static_cast<int>(phi) << " at " << x << " in float: got " << rounded << ", expected " << expected);
    }
}

BOOST_AUTO_TEST_CASE(derivatives) {
  for (const Pointwise phi : all)
    for (const double x : points()) {
      const long double h = std::abs(x) < 1e-5 ? 1e-8L : 1e-5L * std::max(1.0L, std::abs(static_cast<long double>(x)));
      const auto expected = static_cast<double>((defined(phi, x + h) - defined(phi, x - h)) / (2 * h));
      const auto exact = derivative<double>(phi, x);
      const auto rounded = derivative<float>(phi, x);
      const double unit = std::max(1.0, std::abs(expected));
      BOOST_TEST(std::abs(exact - expected) <= 1e-7 * unit,
                 "phi " << static_cast<int>(phi) << " at " << x << ": got " << exact << ", expected " << expected);
      BOOST_TEST(std::abs(static_cast<double>(rounded) - exact) <= 3e-6 * unit,
                 "phi " << static_cast<int>(phi) << " at " << x << ": float " << rounded << ", double " << exact);
    }
}

BOOST_AUTO_TEST_CASE(kinks_have_derivative_zero) {
  for (const Pointwise phi : {Pointwise::relu, Pointwise::relu2, Pointwise::relu6}) {
    BOOST_TEST(derivative<double>(phi, 0.0) == 0.0);
    BOOST_TEST(derivative<double>(phi, -0.0) == 0.0);
  }
  BOOST_TEST(derivative<double>(Pointwise::relu6, 6.0) == 0.0);
}

// The tails of softplus and of the logistic function are accurate to all digits.
BOOST_AUTO_TEST_CASE(tails) {
  BOOST_TEST(std::abs(forward<double>(Pointwise::softplus, -60) / std::exp(-60.0) - 1) < 1e-15);
  BOOST_TEST(std::abs(forward<double>(Pointwise::sigmoid, -60) / std::exp(-60.0) - 1) < 1e-15);
  BOOST_TEST(std::abs(derivative<double>(Pointwise::sigmoid, 60) / std::exp(-60.0) - 1) < 1e-15);
  BOOST_TEST(derivative<double>(Pointwise::softplus, 800) == 1.0);
  BOOST_TEST(forward<double>(Pointwise::softplus, 0) == std::log(2.0));
}

// Causal rows of 3 columns with a gap: weights and gradients of invalid keys are 0, only the s of valid keys are
// scaled, and gaps do not change.
BOOST_AUTO_TEST_CASE(rows) {
  const kernels::PointwiseRows rule{Pointwise::relu2, 0.25, {0.5, true, 1}};
  const auto matrix = [](std::vector<double>& x) { return Matrix<double>(x.data(), 2, 3, 4); };
  std::vector<double> s{4, 9, 9, 7, -2, 6, 9, 7}, p(8, 7.0), dp{1, 1, 1, 7, 1, 1, 1, 7};
  kernels::attention_pointwise(rule, matrix(s), matrix(p));
  BOOST_TEST(p == (std::vector<double>{1, 0, 0, 7, 0, 2.25, 0, 7}), boost::test_tools::per_element());
  BOOST_TEST(s == (std::vector<double>{2, 9, 9, 7, -1, 3, 9, 7}), boost::test_tools::per_element());
  std::vector<double> again(8, 7.0);
  kernels::attention_pointwise_again(rule, Matrix<const double>(s.data(), 2, 3, 4), matrix(again));
  BOOST_TEST(again == p, boost::test_tools::per_element());
  kernels::attention_pointwise_backward(rule, matrix(s), matrix(dp));
  BOOST_TEST(dp == (std::vector<double>{0.5, 0, 0, 7, 0, 0.75, 0, 7}), boost::test_tools::per_element());
  std::vector<double> in_place{4, 9, 9, 7, -2, 6, 9, 7};
  kernels::attention_pointwise(rule, matrix(in_place), matrix(in_place));
  BOOST_TEST(in_place == p, boost::test_tools::per_element());
}

// Rows longer than the loops process at a time, with and without gaps between rows of either matrix.
BOOST_AUTO_TEST_CASE(long_rows) {
  const kernels::PointwiseRows rule{Pointwise::relu, 0.25, {0.5}};
  const Index rows = 2, n = 1500;
  for (const Index s_gap : {0, 3})
    for (const Index p_gap : {0, 5}) {
      std::vector<double> s(static_cast<std::size_t>(rows * (n + s_gap))),
          p(static_cast<std::size_t>(rows * (n + p_gap)));
      const Matrix<double> scores(s.data(), rows, n, n + s_gap), weights(p.data(), rows, n, n + p_gap);
      const auto number = [](Index r, Index j) { return static_cast<double>((r + 3 * j) % 17) - 8; };
      for (Index r = 0; r < rows; ++r)
        for (Index j = 0; j < n; ++j) scores(r, j) = number(r, j);
      kernels::attention_pointwise(rule, scores, weights);
      for (Index r = 0; r < rows; ++r)
        for (Index j = 0; j < n; ++j)
          BOOST_REQUIRE(scores(r, j) == 0.5 * number(r, j) && weights(r, j) == 0.125 * std::max(number(r, j), 0.0));
    }
}

BOOST_AUTO_TEST_SUITE_END()
