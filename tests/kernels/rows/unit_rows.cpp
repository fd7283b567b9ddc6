#include "heed/kernels/rows/unit_rows.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_unit_rows)

// Rows of lengths 5, 0 and 1e-13; the last two are divided by the constant 1e-12, so their gradients are dy / 1e-12.
// For the first, y = (3, 4) / 5 and y . dy = 11/5: dx = ((1, 2) - 11/5 y) / 5.
BOOST_AUTO_TEST_CASE(by_hand) {
  const std::vector<double> x{3, 4, 7, 0, 0, 7, 1e-13, 0, 7}, dy{1, 2, 3, 4, 5, 6};
  std::vector<double> y(6), divisors(3), dots(3), dx(6, 1.0);
  const auto check = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-14 * std::abs(expected[i]), "element " << i << ": " << got[i]);
  };
  kernels::unit_rows(Matrix(x.data(), 3, 2, 3), divisors.data(), Matrix(y.data(), 3, 2));
  check(divisors, {5, 1e-12, 1e-12});
  check(y, {0.6, 0.8, 0, 0, 0.1, 0});
  kernels::unit_rows_backward<double>(Matrix(y.data(), 3, 2), divisors.data(), Matrix(dy.data(), 3, 2),
                                      Update::accumulate, dots.data(), Matrix(dx.data(), 3, 2));
  check(dx, {1 - 0.064, 1 + 0.048, 1 + 3e12, 1 + 4e12, 1 + 5e12, 1 + 6e12});
}

BOOST_AUTO_TEST_SUITE_END()
