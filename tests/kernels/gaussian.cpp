// Gaussian kernel matrices: distances that do not cancel, gradients, and products in blocks.
#include "heed/cost/counted.h"
#include "heed/kernels/gaussian.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

namespace {

template <class T = double>
std::vector<T> numbers(Index count, const char* name, double bound = 1) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const RandomStream stream = RandomStream(3).derive(name);
  for (Index i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = T(stream.uniform(i, -bound, bound));
  return values;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  BOOST_REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Central differences of f() by each element of x.
template <class F>
std::vector<double> differences(std::vector<double>& x, const F& f) {
  std::vector<double> result;
  for (double& element : x) {
    const double centre = element, h = 1e-5;
    element = centre + h;
    const double above = f();
    element = centre - h;
    result.push_back((above - f()) / (2 * h));
    element = centre;
  }
  return result;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(gaussian)

// 2048 + k / 64 is exact in float, and so are differences; |x|^2 + |y|^2 - 2 x.y would be lost in 2048^2 = 4e6.
BOOST_AUTO_TEST_CASE(distances_do_not_cancel) {
  const Index n = 7, d = 5;
  std::vector<float> x(n * d);
  std::vector<double> near(n * d), far(n * n), expected(n * n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    near[i] = std::round(64 * RandomStream(1).uniform(static_cast<Index>(i), -2, 2)) / 64;
    x[i] = static_cast<float>(2048 + near[i]);
  }
  std::vector<float> g(n * n);
  kernels::squared_distances(n, n, d, x.data(), d, x.data(), d, g.data(), n);
  kernels::squared_distances(n, n, d, near.data(), d, near.data(), d, expected.data(), n);
  for (std::size_t i = 0; i < g.size(); ++i) BOOST_TEST(std::abs(g[i] - expected[i]) <= 7 * 6e-8 * expected[i]);
  for (Index i = 0; i < n; ++i) {
    BOOST_TEST(g[i * n + i] == 0);
    for (Index j = 0; j < n; ++j) BOOST_TEST(g[i * n + j] == g[j * n + i]);
  }
}

BOOST_AUTO_TEST_CASE(by_hand_and_at_the_ends_of_the_range) {
  const std::vector<double> x{1, 2, 1, 2}, y{4, -2};  // |(1, 2) - (4, -2)|^2 = 25
  std::vector<double> g(2);
  kernels::gaussian(2, 1, 2, x.data(), 2, y.data(), 2, 0.1, g.data(), 1);
  BOOST_TEST(g[0] == std::exp(-2.5));
  BOOST_TEST(g[1] == g[0]);
  const std::vector<float> far{3e38f, -3e38f};
  std::vector<float> h(4);
  kernels::gaussian(2, 2, 1, far.data(), 1, far.data(), 1, 0.1, h.data(), 2);
  BOOST_TEST(h == (std::vector<float>{1, 0, 0, 1}));
}

BOOST_AUTO_TEST_CASE(gradients_agree_with_differences_and_are_added_when_asked) {
  const Index m = 3, n = 5, d = 4, stride = 6;  // rows of y have a gap
  const double scale = 0.3;
  auto x = numbers(m * d, "x"), y = numbers(n * stride, "y"), dg = numbers(m * n, "dg");
  std::vector<double> g(m * n);
  const auto value = [&] {
    kernels::gaussian(m, n, d, x.data(), d, y.data(), stride, scale, g.data(), n);
    return dot(g, dg);
  };
  const auto expected_x = differences(x, value), expected_y = differences(y, value);
  value();
  std::vector<double> dx(m * d, 7), dy(n * stride, 0);
  kernels::gaussian_backward(m, n, d, x.data(), d, y.data(), stride, scale, g.data(), dg.data(), n, Update::assign,
                             dx.data(), d, Update::accumulate, dy.data(), stride);
  BOOST_TEST(largest_difference(dx, expected_x) < 1e-9);
  BOOST_TEST(largest_difference(dy, expected_y) < 1e-9);
  auto twice = dx;
  kernels::gaussian_backward(m, n, d, x.data(), d, y.data(), stride, scale, g.data(), dg.data(), n, Update::accumulate,
                             twice.data(), d, Update::assign, static_cast<double*>(nullptr), 0);
  for (std::size_t i = 0; i < dx.size(); ++i) BOOST_TEST(std::abs(twice[i] - 2 * dx[i]) < 1e-15);
}

// With rows on both sides, dx gets dg and its transpose.
BOOST_AUTO_TEST_CASE(rows_with_themselves) {
  const Index n = 4, d = 3;
  auto x = numbers(n * d, "x"), dg = numbers(n * n, "dg");
  std::vector<double> g(n * n), dx(n * d);
  const auto value = [&] {
    kernels::gaussian(n, n, d, x.data(), d, x.data(), d, 0.5, g.data(), n);
    return dot(g, dg);
  };
  const auto expected = differences(x, value);
  value();
  std::vector<double> both(n * n);
  for (Index i = 0; i < n; ++i)
    for (Index j = 0; j < n; ++j) both[i * n + j] = dg[i * n + j] + dg[j * n + i];
  kernels::gaussian_backward(n, n, d, x.data(), d, x.data(), d, 0.5, g.data(), both.data(), n, Update::assign,
                             dx.data(), d, Update::assign, static_cast<double*>(nullptr), 0);
  BOOST_TEST(largest_difference(dx, expected) < 1e-9);
}

// Around the size of a block of rows.
BOOST_AUTO_TEST_CASE(products_in_blocks_are_products_with_the_whole_matrix) {
  for (const Index n : {1, 5, 63, 64, 65, 130}) {
    const Index d = 3, e = 2;
    const auto x = numbers(n * d, "x", 2), v = numbers(n * e, "v"), dout = numbers(n * e, "dout");
    std::vector<double> G(n * n), out(n * e), expected(n * e), scratch(kernels::gaussian_product_scratch(n, d));
    kernels::gaussian(n, n, d, x.data(), d, x.data(), d, 0.3, G.data(), n);
    kernels::gemm(Transpose::no, Transpose::no, n, e, n, G.data(), n, v.data(), e, Update::assign, expected.data(), e);
    kernels::gaussian_product(n, d, e, x.data(), d, 0.3, v.data(), e, out.data(), e, scratch.data());
    BOOST_TEST(largest_difference(out, expected) < 1e-13);

    std::vector<double> dG(n * n), dx(n * d), expected_dx(n * d), dv(n * e), expected_dv(n * e);
    kernels::gemm(Transpose::yes, Transpose::no, n, e, n, G.data(), n, dout.data(), e, Update::assign,
                  expected_dv.data(), e);
    kernels::gemm(Transpose::no, Transpose::yes, n, n, e, dout.data(), e, v.data(), e, Update::assign, dG.data(), n);
    kernels::gemm(Transpose::no, Transpose::yes, n, n, e, v.data(), e, dout.data(), e, Update::accumulate, dG.data(),
                  n);
    kernels::gaussian_backward(n, n, d, x.data(), d, x.data(), d, 0.3, G.data(), dG.data(), n, Update::assign,
                               expected_dx.data(), d, Update::assign, static_cast<double*>(nullptr), 0);
    kernels::gaussian_product_backward(n, d, e, x.data(), d, 0.3, v.data(), e, dout.data(), e, Update::assign,
                                       dv.data(), e, Update::assign, dx.data(), d, scratch.data());
    BOOST_TEST(largest_difference(dv, expected_dv) < 1e-13);
    BOOST_TEST(largest_difference(dx, expected_dx) < 1e-13);
  }
}

// The fast kernels against the plain loops in double, in shapes around the widths of vectors and tiles. A term of a
// gradient is a product of two factors, each with at most (d + 6) roundings, and n terms are added.
BOOST_AUTO_TEST_CASE(float_agrees_with_double) {
  for (const Index d : {1, 3, 15, 16, 17, 33})
    for (const auto& [m, n] : {std::pair<Index, Index>{1, 1}, {1, 7}, {4, 5}, {6, 3}, {9, 18}}) {
      const auto x = numbers<float>(m * d, "x"), y = numbers<float>(n * d, "y"), dg = numbers<float>(m * n, "dg");
      const std::vector<double> x2(x.begin(), x.end()), y2(y.begin(), y.end()), dg2(dg.begin(), dg.end());
      std::vector<float> g(m * n), dx(m * d, 1), dy(n * d);
      std::vector<double> expected_g(m * n), expected_dx(m * d, 1), expected_dy(n * d);
      kernels::gaussian(m, n, d, x.data(), d, y.data(), d, 0.2, g.data(), n);
      kernels::gaussian(m, n, d, x2.data(), d, y2.data(), d, 0.2, expected_g.data(), n);
      kernels::gaussian_backward(m, n, d, x.data(), d, y.data(), d, 0.2, g.data(), dg.data(), n, Update::accumulate,
                                 dx.data(), d, Update::assign, dy.data(), d);
      kernels::gaussian_backward(m, n, d, x2.data(), d, y2.data(), d, 0.2, expected_g.data(), dg2.data(), n,
                                 Update::accumulate, expected_dx.data(), d, Update::assign, expected_dy.data(), d);
      const double eps = 6e-8, roundings = static_cast<double>(d + 6 + m + n);
      BOOST_TEST(largest_difference({g.begin(), g.end()}, expected_g) < 4 * roundings * eps);
      BOOST_TEST(largest_difference({dx.begin(), dx.end()}, expected_dx) < 4 * roundings * eps);
      BOOST_TEST(largest_difference({dy.begin(), dy.end()}, expected_dy) < 4 * roundings * eps);
    }
}

BOOST_AUTO_TEST_CASE(counts) {
  const Index m = 3, n = 5, d = 4;
  const auto x = numbers<Counted>(m * d, "x"), y = numbers<Counted>(n * d, "y"), dg = numbers<Counted>(m * n, "dg");
  std::vector<Counted> g(m * n), dx(m * d), dy(n * d);
  const auto count = [](const auto& run) {
    Counted::tally() = {};
    run();
    return Counted::tally();
  };
  BOOST_TEST((count([&] { kernels::gaussian(m, n, d, x.data(), d, y.data(), d, 0.3, g.data(), n); }) ==
              kernels::gaussian_cost(m, n, d, false).forward));
  for (const bool only_x : {false, true}) {
    const auto run = [&] {
      kernels::gaussian_backward(m, n, d, x.data(), d, y.data(), d, 0.3, g.data(), dg.data(), n,
                                 only_x ? Update::accumulate : Update::assign, dx.data(), d, Update::assign,
                                 only_x ? nullptr : dy.data(), d);
    };
    BOOST_TEST((count(run) == kernels::gaussian_cost(m, n, d, only_x).backward));
  }
}

BOOST_AUTO_TEST_SUITE_END()
