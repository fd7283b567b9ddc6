// Division by square roots of row sums. Sums below the minimum, 1e-6, count as 1e-6 and have no gradient. Gradients of
// the other sums, and the scaled inverse, are checked with SOFT and in tests/kernels/solvers/newton_inverse.cpp.
#include "heed/kernels/rows/row_sums.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_row_sums)

BOOST_AUTO_TEST_CASE(sums_below_the_least) {
  const std::vector<double> D{4, 1e-8, -1}, x{2, 6, 1, 2, 3, -1};
  std::vector<double> y(6, 10.0);
  const auto check = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < expected.size(); ++i)
      BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-14 * std::abs(expected[i]), "element " << i << ": " << got[i]);
  };
  kernels::scale_rows<double>(Matrix(D.data(), 3, 1), Matrix(x.data(), 3, 2), Update::assign, Matrix(y.data(), 3, 2));
  check(y, {1, 3, 1000, 2000, 3000, -1000});
  kernels::scale_rows<double>(Matrix(D.data(), 3, 1), Matrix(x.data(), 3, 2), Update::accumulate,
                              Matrix(y.data(), 3, 2));
  check(y, {2, 6, 2000, 4000, 6000, -2000});
  // dout.out = 3 + 8 and dw.w = 5 - 6 in the first row: dD = -10 / (2 * 4).
  const std::vector<double> out{1, 2, 1, 2, 1, 2}, dout{3, 4, 3, 4, 3, 4}, w{5, 6, 5, 6, 5, 6}, dw{1, -1, 1, -1, 1, -1};
  std::vector<double> dD(3, 7.0);
  const auto matrix = [](const std::vector<double>& of) { return Matrix(of.data(), 3, 2); };
  kernels::row_sums_backward<double>(Matrix(D.data(), 3, 1), matrix(out), matrix(dout), matrix(w), matrix(dw),
                                     Matrix(dD.data(), 3, 1));
  check(dD, {-1.25, 0, 0});
}

BOOST_AUTO_TEST_SUITE_END()
