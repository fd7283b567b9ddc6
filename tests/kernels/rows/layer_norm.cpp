#include "heed/kernels/rows/layer_norm.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

namespace {

/// Returns the scale of each row from statistics [rows, 2].
std::vector<double> scales(const std::vector<double>& statistics) {
  std::vector<double> values;
  for (std::size_t i = 1; i < statistics.size(); i += 2) values.push_back(statistics[i]);
  return values;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_layer_norm)

// Rows with means up to ten times their spread. An error of n eps |mean| in the mean shifts every centred value, so
// bounds grow with n.
BOOST_AUTO_TEST_CASE(forward_and_backward) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 7})
      for (const Index gap : {0, 5}) {
        if (n == 1) continue;  // x = mean: only rounding errors
        const Index stride = n + gap, size = rows * stride - gap;
        const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, n, stride); };
        const auto pairs = [=](auto& statistics) { return Matrix(statistics.data(), rows, 2); };
        auto x = normal_floats(size, 1);
        for (Index i = 0; i < size; ++i) x[i] = static_cast<float>(x[i] + static_cast<double>(i / stride % 3) * 5);
        const auto gamma = normal_floats(n, 2), beta = normal_floats(n, 3), dy = normal_floats(size, 4);
        const auto before = normal_floats(size, 5), residual = normal_floats(size, 6);
        const double tolerance = 1e-6 * static_cast<double>(n + 20);

        std::vector<double> y(before), sum(before), statistics(2 * rows);
        Guarded fx(x, 1), fgamma(gamma, 2), fbeta(beta, 0), fy(before, 3), fstatistics(2 * rows, 1);
        const kernels::RowNorm<double> norm{gamma.data(), beta.data(), 1e-6};
        const kernels::RowNorm<float> fnorm{fgamma.data(), fbeta.data(), 1e-6};
        kernels::reference::layer_norm_forward(norm, matrix(x), {}, matrix(y), pairs(statistics));
        kernels::layer_norm_forward(fnorm, matrix(fx), {}, matrix(fy), pairs(fstatistics));
        const auto scale = scales(statistics);
        const auto row_scale = [&](std::size_t i) {
          return std::max(1.0, scale[i / static_cast<std::size_t>(stride)]);
        };
        require_close("mean and scale", fstatistics, statistics, [&](std::size_t i) {
          const double s = scale[i / 2];
          return i % 2 == 0 ? tolerance : tolerance * s * std::max(1.0, s);
        });
        const auto bound = [&](std::size_t i) { return 10 * tolerance * row_scale(i); };
        require_close("y", fy, y, bound);

        kernels::reference::layer_norm_forward(norm, matrix(x), matrix(residual), matrix(sum), pairs(statistics));
        Guarded fresidual(residual, 2), fsum(before, 0), again(before, 1);
        kernels::layer_norm_forward(fnorm, matrix(fx), matrix(fresidual), matrix(fsum), pairs(fstatistics));
        require_close("y + residual", fsum, sum, bound);
        kernels::layer_norm_again(fnorm, matrix(fx), pairs(fstatistics), matrix(again));
        for (Index i = 0; i < size; ++i) BOOST_REQUIRE_EQUAL(again[i], fy[i]);
        BOOST_REQUIRE(again.guards_unchanged());

        for (const Update update : {Update::assign, Update::accumulate}) {
          std::vector<double> dx(before);
          Guarded fdy(dy, 1), fdx(before, 3);
          kernels::reference::layer_norm_backward(gamma.data(), matrix(x), pairs(statistics), matrix(dy), update,
                                                  matrix(dx));
          kernels::layer_norm_backward(fgamma.data(), matrix(fx), pairs(fstatistics), matrix(fdy), update, matrix(fdx));
          require_close("dx", fdx, dx, [&](std::size_t i) { return bound(i) * row_scale(i); });
        }
      }
}

// A row's results depend on this row only.
BOOST_AUTO_TEST_CASE(the_rows_beside_it_make_no_difference_to_a_row) {
  const Index n = 50, rows = 7;
  const auto x = normal_floats(rows * n, 1), gamma = normal_floats(n, 2), dy = normal_floats(rows * n, 3);
  Guarded fx(x, 1), fgamma(gamma, 2), fdy(dy, 0), y(rows * n, 3), dx(rows * n, 0), statistics(2 * rows, 1);
  const auto matrix = [=](Guarded& numbers) { return Matrix(numbers.data(), rows, n); };
  const kernels::RowNorm<float> norm{fgamma.data(), fgamma.data(), 1e-6};
  const Matrix<float> all(statistics.data(), rows, 2);
  kernels::layer_norm_forward(norm, matrix(fx), {}, matrix(y), all);
  kernels::layer_norm_backward(fgamma.data(), matrix(fx), all, matrix(fdy), Update::assign, matrix(dx));
  for (Index r = 0; r < rows; ++r) {
    Guarded row_y(n, 1), row_dx(n, 1), row_statistics(2, 0);
    const auto row = [=](Guarded& numbers) { return Matrix(numbers.data(), 1, n); };
    const Matrix<const float> row_x = matrix(fx).middle_rows(r, 1), row_dy = matrix(fdy).middle_rows(r, 1);
    const Matrix<float> own(row_statistics.data(), 1, 2);
    kernels::layer_norm_forward(norm, row_x, {}, row(row_y), own);
    kernels::layer_norm_backward(fgamma.data(), row_x, own, row_dy, Update::assign, row(row_dx));
    for (Index i = 0; i < n; ++i) {
      BOOST_REQUIRE_EQUAL(row_y[i], y[r * n + i]);
      BOOST_REQUIRE_EQUAL(row_dx[i], dx[r * n + i]);
    }
  }
}

BOOST_AUTO_TEST_CASE(parameter_gradients) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 50})
      for (const Update update : {Update::assign, Update::accumulate}) {
        const auto x = normal_floats(rows * n, 1), dy = normal_floats(rows * n, 2);
        const auto statistics = normal_floats(2 * rows, 3);
        // dgamma, then dbeta, separated by a gap that must not change
        const Index stride = n + 3;
        auto sums = normal_floats(stride + n, 5);
        Guarded fx(x, 1), fdy(dy, 2), fstatistics(statistics, 0), fsums(sums, 1);
        const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, n); };
        const auto pairs = [=](auto& numbers) { return Matrix(numbers.data(), rows, 2); };
        kernels::reference::layer_norm_parameter_gradients(matrix(x), pairs(statistics), matrix(dy), update,
                                                           Matrix(sums.data(), 2, n, stride));
        kernels::layer_norm_parameter_gradients(matrix(fx), pairs(fstatistics), matrix(fdy), update,
                                                Matrix<float>(fsums.data(), 2, n, stride));
        require_close("dgamma, dbeta", fsums, sums, [&](std::size_t i) {
          const auto at = static_cast<Index>(i);
          return (at < n ? 1e-6 : at < stride ? 0 : 2e-7) * static_cast<double>(rows + 10);
        });
      }
}

BOOST_AUTO_TEST_CASE(nan_is_seen) {
  Guarded x(40, 1, 0.5f), one(20, 0, 1.0f), y(40, 1), statistics(4, 0);
  x.data()[19] = NAN;
  kernels::layer_norm_forward({one.data(), one.data(), 1e-6}, Matrix<const float>(x.data(), 2, 20), {},
                              Matrix(y.data(), 2, 20), {statistics.data(), 2, 2});
  for (Index i = 0; i < 20; ++i) BOOST_REQUIRE(std::isnan(y[i]));
  for (Index i = 20; i < 40; ++i) BOOST_REQUIRE(y[i] == 1.0f);
}

BOOST_AUTO_TEST_SUITE_END()
