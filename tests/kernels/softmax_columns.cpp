#include "heed/kernels/softmax_columns.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_softmax_columns)

// Rows `stride` apart at unaligned addresses; channels around every width of a register, and beyond those kept at once.
// Column c is spread by 10^(c % 4).
BOOST_AUTO_TEST_CASE(float_agrees_with_double_at_every_width) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 37}) {
      const Index stride = n + 3;
      auto x = normal_floats(rows * stride, 1);
      for (Index i = 0; i < rows * stride; ++i) x[i] = static_cast<float>(x[i] * std::pow(10, i % stride % 4));
      const auto dy = normal_floats(rows * stride, 2);
      const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, n, stride); };
      std::vector<double> y(rows * stride, 7), dx(rows * stride, 7);
      Guarded fx(x, 1), fdy(dy, 2), fy(rows * stride, 3, 7), fdx(rows * stride, 0, 7);
      kernels::softmax_columns(matrix(x), matrix(y));
      kernels::softmax_columns(matrix(fx), matrix(fy));
      require_close("y", fy, y, [&](std::size_t i) {
        double maximum = -INFINITY;
        for (Index r = 0; r < rows; ++r) maximum = std::max(maximum, x[r * stride + i % stride]);
        return y[i] * (4e-7 + 7e-8 * std::abs(x[i] - maximum)) + 2e-38;
      });
      for (const Update update : {Update::assign, Update::accumulate}) {
        const Matrix<const double> of = matrix(y);
        kernels::softmax_columns_backward(of, matrix(dy), update, matrix(dx));
        std::vector<double> rounded(y.size());
        for (std::size_t i = 0; i < y.size(); ++i) rounded[i] = fy[static_cast<Index>(i)];
        kernels::softmax_columns_backward(Matrix<const float>(matrix(fy)), matrix(fdy), update, matrix(fdx));
        // y carries up to 1e-6 and more of itself where x is far from the maximum: there y is small.
        require_close("dx", fdx, dx, [&](std::size_t) { return 2e-6 * 8; });
      }
    }
}

// Columns of (1, 1, 1, 1) / 4 whatever is added to them; what is very negative counts nothing; NaN stays.
BOOST_AUTO_TEST_CASE(special_columns) {
  for (const float offset : {0.0f, 1e30f, -1e30f}) {
    Guarded x(4, 1, offset), y(4, 0);
    kernels::softmax_columns(Matrix(x.data(), 4, 1), Matrix(y.data(), 4, 1));
    require_close("equal", y, {0.25, 0.25, 0.25, 0.25}, [](std::size_t) { return 0; });
  }
  Guarded x({0, -200, -INFINITY, 0}, 1), y(4, 0);
  kernels::softmax_columns(Matrix(x.data(), 4, 1), Matrix(y.data(), 4, 1));
  require_close("far", y, {0.5, 0, 0, 0.5}, [](std::size_t) { return 1e-38; });
  x.data()[1] = NAN;
  kernels::softmax_columns(Matrix(x.data(), 4, 1), Matrix(y.data(), 4, 1));
  for (Index i = 0; i < 4; ++i) BOOST_TEST(std::isnan(y[i]));
}

BOOST_AUTO_TEST_SUITE_END()
