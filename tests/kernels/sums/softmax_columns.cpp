// Extreme values, and counts. tests/kernels/fast_kernels.cpp tests the rest.
#include "heed/kernels/sums/softmax_columns.h"

#include "heed/cost/counted.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

namespace {

template <class Numbers>
auto matrix(Numbers& numbers, Index rows, Index columns, Index stride) {
  return Matrix(numbers.data(), rows, columns, stride);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_softmax_columns)

// Columns with numbers from about 0.1 to 1e4 in magnitude; in those of 1e4, only the largest numbers have weight. The
// result replaces the input.
BOOST_AUTO_TEST_CASE(columns_of_any_spread) {
  const Index rows = 37, n = 70;
  auto x = normal_floats(rows * n, 1);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = static_cast<float>(std::clamp(x[i] * std::pow(10, static_cast<double>(i % 7) - 1), -1e4, 1e4));
  std::vector<double> y(x);
  Guarded fast(x, 1);
  kernels::reference::softmax_columns<double>(matrix(y, rows, n, n), matrix(y, rows, n, n));
  kernels::softmax_columns(matrix(fast, rows, n, n), matrix(fast, rows, n, n));
  require_close("y", fast, y, [&](std::size_t i) {
    double maximum = x[i];
    for (std::size_t r = i % n; r < x.size(); r += n) maximum = std::max(maximum, x[r]);
    return y[i] * (3e-7 + 6e-8 * (static_cast<double>(rows) / 4 + maximum - x[i])) + 2e-38;
  });
}

BOOST_AUTO_TEST_CASE(counts) {
  const Index rows = 5, n = 70;
  std::vector<Counted> x(rows * n, Counted(1)), y(rows * n), dx(rows * n);
  Counted::tally() = {};
  kernels::softmax_columns<Counted>(matrix(x, rows, n, n), matrix(y, rows, n, n));
  BOOST_TEST((Counted::tally() == kernels::softmax_columns_counts(rows, n)));
  Counted::tally() = {};
  kernels::softmax_columns_backward<Counted>(matrix(y, rows, n, n), matrix(x, rows, n, n), Update::assign,
                                             matrix(dx, rows, n, n));
  BOOST_TEST((Counted::tally() == kernels::softmax_columns_backward_counts(rows, n)));
}

BOOST_AUTO_TEST_SUITE_END()
