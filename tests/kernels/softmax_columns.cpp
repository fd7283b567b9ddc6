#include "heed/kernels/softmax_columns.h"

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

BOOST_AUTO_TEST_CASE(every_shape) {
  for (const Index n : lengths)
    for (const Index rows : {1, 4, 7, 37}) {
      const Index stride = n + 3;
      auto x = normal_floats(rows * stride, 1);
      for (std::size_t i = 0; i < x.size(); ++i)  // columns of different spread, up to +-1e4 or so
        x[i] = static_cast<float>(x[i] * std::pow(10, static_cast<double>(i % static_cast<std::size_t>(stride)) - 1));
      for (double& value : x) value = std::clamp(value, -1e4, 1e4);
      std::vector<double> y(x);
      Guarded fast(x, 1);
      kernels::reference::softmax_columns<double>(matrix(y, rows, n, stride), matrix(y, rows, n, stride));
      kernels::softmax_columns(matrix(fast, rows, n, stride), matrix(fast, rows, n, stride));
      require_close("y", fast, y, [&](std::size_t i) {
        const auto column = static_cast<Index>(i) % stride;
        double maximum = x[i];
        for (Index r = 0; r < rows; ++r) maximum = std::max(maximum, x[static_cast<std::size_t>(r * stride + column)]);
        return y[i] * (3e-7 + 6e-8 * (static_cast<double>(rows) / 4 + maximum - x[i])) + 2e-38;
      });

      const auto dy = normal_floats(rows * stride, 2), before = normal_floats(rows * stride, 3);
      for (const Update update : {Update::assign, Update::accumulate}) {
        std::vector<double> dx(before);
        Guarded fast_y(y, 1), fast_dy(dy, 2), fast_dx(before, 3);
        std::vector<double> rounded;
        for (Index i = 0; i < rows * stride; ++i) rounded.push_back(fast_y[i]);
        kernels::reference::softmax_columns_backward<double>(
            matrix(rounded, rows, n, stride), matrix(dy, rows, n, stride), update, matrix(dx, rows, n, stride));
        kernels::softmax_columns_backward(matrix(fast_y, rows, n, stride), matrix(fast_dy, rows, n, stride), update,
                                          matrix(fast_dx, rows, n, stride));
        require_close("dx", fast_dx, dx, [&](std::size_t i) {
          const auto column = static_cast<Index>(i) % stride;
          double sum = 0;
          for (Index r = 0; r < rows; ++r) {
            const auto at = static_cast<std::size_t>(r * stride + column);
            sum += std::abs(rounded[at] * dy[at]);
          }
          return 6e-8 * ((static_cast<double>(rows) + 3) * rounded[i] * (std::abs(dy[i]) + sum) + 2 * std::abs(dx[i])) +
                 1e-37;
        });
      }
    }
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
