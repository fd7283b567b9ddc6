// Gaussian kernel matrices: distances without cancellation, gradients, and products in blocks.
#include "heed/cost/counted.h"
#include "heed/kernels/distances/gaussian.h"
#include "heed/base/random.h"

#include "support/compare.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;
using namespace heed::test;

namespace {

template <class T = double>
std::vector<T> numbers(Index count, const char* name, double bound = 1) {
  std::vector<T> values(static_cast<std::size_t>(count));
  const RandomStream stream = RandomStream(3).derive(name);
  for (Index i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = T(stream.uniform(i, -bound, bound));
  return values;
}

/// Returns the elements as a contiguous matrix.
template <class T>
Matrix<T> matrix(std::vector<T>& numbers, Index rows, Index columns) {
  return {numbers.data(), rows, columns};
}
template <class T>
Matrix<const T> matrix(const std::vector<T>& numbers, Index rows, Index columns) {
  return {numbers.data(), rows, columns};
}

/// Returns central differences of f() with respect to each element of x.
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

// 2048 + k / 64 is exact in float, and so are differences; |x|^2 + |y|^2 - 2 x.y would lose them next to 2048^2 = 4e6.
BOOST_AUTO_TEST_CASE(distances_do_not_cancel) {
  const Index n = 7, d = 5;
  std::vector<float> x(n * d);
  std::vector<double> near(n * d), far(n * n), expected(n * n);
  for (std::size_t i = 0; i < x.size(); ++i) {
    near[i] = std::round(64 * RandomStream(1).uniform(static_cast<Index>(i), -2, 2)) / 64;
    x[i] = static_cast<float>(2048 + near[i]);
  }
  std::vector<float> g(n * n);
  kernels::squared_distances(matrix(x, n, d), matrix(x, n, d), matrix(g, n, n));
  kernels::squared_distances(matrix(near, n, d), matrix(near, n, d), matrix(expected, n, n));
  for (std::size_t i = 0; i < g.size(); ++i) BOOST_TEST(std::abs(g[i] - expected[i]) <= 7 * 6e-8 * expected[i]);
  for (Index i = 0; i < n; ++i) {
    BOOST_TEST(g[i * n + i] == 0);
    for (Index j = 0; j < n; ++j) BOOST_TEST(g[i * n + j] == g[j * n + i]);
  }
}

BOOST_AUTO_TEST_CASE(by_hand_and_at_the_ends_of_the_range) {
  const std::vector<double> x{1, 2, 1, 2}, y{4, -2};  // |(1, 2) - (4, -2)|^2 = 25
  std::vector<double> g(2);
  kernels::gaussian(matrix(x, 2, 2), matrix(y, 1, 2), 0.1, matrix(g, 2, 1));
  BOOST_TEST(g[0] == std::exp(-2.5));
  BOOST_TEST(g[1] == g[0]);
  const std::vector<float> far{3e38f, -3e38f};
  std::vector<float> h(4);
  kernels::gaussian(matrix(far, 2, 1), matrix(far, 2, 1), 0.1, matrix(h, 2, 2));
  BOOST_TEST(h == (std::vector<float>{1, 0, 0, 1}));
}

BOOST_AUTO_TEST_CASE(gradients_agree_with_differences_and_are_added_when_asked) {
  const Index m = 3, n = 5, d = 4, stride = 6;  // rows of y have a gap
  const double scale = 0.3;
  auto x = numbers(m * d, "x"), y = numbers(n * stride, "y"), dg = numbers(m * n, "dg");
  std::vector<double> g(m * n);
  const kernels::GaussianMatrix<double> of{matrix(x, m, d), {y.data(), n, d, stride}, scale, matrix(g, m, n)};
  const auto value = [&] {
    kernels::gaussian(of.x, of.y, scale, matrix(g, m, n));
    return dot(g, dg);
  };
  const auto expected_x = differences(x, value), expected_y = differences(y, value);
  value();
  std::vector<double> dx(m * d, 7), dy(n * stride, 0);
  kernels::gaussian_backward(of, matrix(dg, m, n), Update::assign, matrix(dx, m, d), Update::accumulate,
                             Matrix<double>(dy.data(), n, d, stride));
  BOOST_TEST(largest_difference(dx, expected_x) < 1e-9);
  BOOST_TEST(largest_difference(dy, expected_y) < 1e-9);
  auto twice = dx;
  kernels::gaussian_backward(of, matrix(dg, m, n), Update::accumulate, matrix(twice, m, d));
  for (std::size_t i = 0; i < dx.size(); ++i) BOOST_TEST(std::abs(twice[i] - 2 * dx[i]) < 1e-15);
}

// If x and y are the same rows, dx gets the contributions of dg and of its transpose, whatever is added to the diagonal
// of g.
BOOST_AUTO_TEST_CASE(rows_with_themselves) {
  const Index n = 4, d = 3;
  auto x = numbers(n * d, "x"), dg = numbers(n * n, "dg");
  std::vector<double> g(n * n), dx(n * d);
  const auto value = [&] {
    kernels::gaussian(matrix(x, n, d), matrix(x, n, d), 0.5, matrix(g, n, n));
    return dot(g, dg);
  };
  const auto expected = differences(x, value);
  value();
  for (Index i = 0; i < n; ++i) g[i * n + i] += 0.25;
  kernels::gaussian_gram_backward({matrix(x, n, d), matrix(x, n, d), 0.5, matrix(g, n, n)}, matrix(dg, n, n),
                                  matrix(dx, n, d));
  BOOST_TEST(largest_difference(dx, expected) < 1e-9);
}

// Numbers of rows below, at and above the size of a block, 64.
BOOST_AUTO_TEST_CASE(products_in_blocks_are_products_with_the_whole_matrix) {
  for (const Index n : {1, 5, 63, 64, 65, 130}) {
    const Index d = 3, e = 2;
    const auto x = numbers(n * d, "x", 2), v = numbers(n * e, "v"), dout = numbers(n * e, "dout");
    const auto mx = matrix(x, n, d), mv = matrix(v, n, e), mdout = matrix(dout, n, e);
    const LaidOut<kernels::GaussianRows, double> rows(n);
    std::vector<double> G(n * n), out(n * e), expected(n * e);
    const kernels::GaussianProduct<double> product{mx, 0.3, mv, *rows};
    const auto mG = matrix(G, n, n);
    kernels::gaussian(mx, mx, 0.3, mG);
    kernels::gemm(mG, mv, matrix(expected, n, e));
    kernels::gaussian_product(product, matrix(out, n, e));
    BOOST_TEST(largest_difference(out, expected) < 1e-13);

    std::vector<double> dG(n * n), dx(n * d), expected_dx(n * d), dv(n * e), expected_dv(n * e);
    kernels::gemm(transposed(mG), mdout, matrix(expected_dv, n, e));
    kernels::gemm(mdout, transposed(mv), matrix(dG, n, n));
    kernels::gaussian_gram_backward({mx, mx, 0.3, mG}, matrix(dG, n, n), matrix(expected_dx, n, d));
    kernels::gaussian_product_backward(product, mdout, Update::assign, matrix(dv, n, e), Update::assign,
                                       matrix(dx, n, d));
    BOOST_TEST(largest_difference(dv, expected_dv) < 1e-13);
    BOOST_TEST(largest_difference(dx, expected_dx) < 1e-13);
  }
}

// The fast kernels compared with the references in double, in shapes around the widths of vectors and tiles. A term of
// a gradient is a product of two factors, each with at most (d + 6) rounding errors, and n or m terms are added.
BOOST_AUTO_TEST_CASE(float_agrees_with_double) {
  for (const Index d : {1, 3, 15, 16, 17, 33})
    for (const auto& [m, n] : {std::pair<Index, Index>{1, 1}, {1, 7}, {4, 5}, {6, 3}, {9, 18}}) {
      const auto x = numbers<float>(m * d, "x"), y = numbers<float>(n * d, "y"), dg = numbers<float>(m * n, "dg");
      const std::vector<double> x2(x.begin(), x.end()), y2(y.begin(), y.end()), dg2(dg.begin(), dg.end());
      std::vector<float> g(m * n), dx(m * d, 1), dy(n * d);
      std::vector<double> expected_g(m * n), expected_dx(m * d, 1), expected_dy(n * d);
      const auto mx = matrix(x, m, d), my = matrix(y, n, d);
      const auto mx2 = matrix(x2, m, d), my2 = matrix(y2, n, d), mg2 = matrix(std::as_const(expected_g), m, n);
      kernels::gaussian(mx, my, 0.2, matrix(g, m, n));
      kernels::gaussian(mx2, my2, 0.2, matrix(expected_g, m, n));
      kernels::gaussian_backward({mx, my, 0.2, matrix(g, m, n)}, matrix(dg, m, n), Update::accumulate, matrix(dx, m, d),
                                 Update::assign, matrix(dy, n, d));
      kernels::reference::gaussian_backward({mx2, my2, 0.2, mg2}, matrix(dg2, m, n), Update::accumulate,
                                            matrix(expected_dx, m, d), Update::assign, matrix(expected_dy, n, d));
      const double eps = 6e-8, roundings = static_cast<double>(d + 6 + m + n);
      BOOST_TEST(largest_difference({g.begin(), g.end()}, expected_g) < 4 * roundings * eps);
      BOOST_TEST(largest_difference({dx.begin(), dx.end()}, expected_dx) < 4 * roundings * eps);
      BOOST_TEST(largest_difference({dy.begin(), dy.end()}, expected_dy) < 4 * roundings * eps);
    }
}

BOOST_AUTO_TEST_CASE(counts) {
  const Index m = 3, n = 5, d = 4;
  const auto x = numbers<Counted>(m * d, "x"), y = numbers<Counted>(n * d, "y"), dg = numbers<Counted>(m * n, "dg");
  std::vector<Counted> g(m * n), dx(m * d), dy(n * d), gram(m * m), dgram(m * m);
  const auto mx = matrix(x, m, d), my = matrix(y, n, d);
  const auto count = [](const auto& run) {
    Counted::tally() = {};
    run();
    return Counted::tally();
  };
  const Cost cost = kernels::gaussian_cost(m, n, d), gram_cost = kernels::gaussian_gram_cost(m, d);
  BOOST_TEST((count([&] { kernels::gaussian(mx, my, 0.3, matrix(g, m, n)); }) == cost.forward));
  BOOST_TEST((count([&] {
                kernels::gaussian_backward({mx, my, 0.3, matrix(g, m, n)}, matrix(dg, m, n), Update::assign,
                                           matrix(dx, m, d), Update::assign, matrix(dy, n, d));
              }) == cost.backward));
  BOOST_TEST((count([&] { kernels::gaussian(mx, mx, 0.3, matrix(gram, m, m)); }) == gram_cost.forward));
  BOOST_TEST(
      (count([&] {
         kernels::gaussian_gram_backward({mx, mx, 0.3, matrix(gram, m, m)}, matrix(dgram, m, m), matrix(dx, m, d));
       }) == gram_cost.backward));
}

BOOST_AUTO_TEST_SUITE_END()
