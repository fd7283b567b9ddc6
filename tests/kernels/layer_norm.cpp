#include "heed/kernels/layer_norm.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_layer_norm)

// Rows with means up to ten times their spread. A mean that is off by n eps |mean| moves every centred value by as
// much, so bounds grow with n.
BOOST_AUTO_TEST_CASE(forward_and_backward) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 7})
      for (const Index gap : {0, 5}) {
        if (n == 1) continue;  // x = mean: every result is rounding
        const Index stride = n + gap, size = rows * stride - gap;
        auto x = normal_floats(size, 1);
        for (Index i = 0; i < size; ++i) x[i] = static_cast<float>(x[i] + static_cast<double>(i / stride % 3) * 5);
        const auto gamma = normal_floats(n, 2), beta = normal_floats(n, 3), dy = normal_floats(size, 4);
        const auto before = normal_floats(size, 5), residual = normal_floats(size, 6);
        const double eps = 1e-6, tolerance = 1e-6 * static_cast<double>(n + 20);

        std::vector<double> y(before), sum(before), mean(rows), scale(rows);
        Guarded fx(x, 1), fgamma(gamma, 2), fbeta(beta, 0), fy(before, 3), fmean(rows, 0), fscale(rows, 1);
        kernels::layer_norm_forward<double>(rows, n, stride, x.data(), gamma.data(), beta.data(), eps, nullptr,
                                            y.data(), mean.data(), scale.data());
        kernels::layer_norm_forward(rows, n, stride, fx.data(), fgamma.data(), fbeta.data(), eps, nullptr, fy.data(),
                                    fmean.data(), fscale.data());
        const auto row_scale = [&](std::size_t i) {
          return std::max(1.0, scale[i / static_cast<std::size_t>(stride)]);
        };
        require_close("mean", fmean, mean, [&](std::size_t) { return tolerance; });
        require_close("scale", fscale, scale,
                      [&](std::size_t r) { return tolerance * scale[r] * std::max(1.0, scale[r]); });
        const auto bound = [&](std::size_t i) { return 10 * tolerance * row_scale(i); };
        require_close("y", fy, y, bound);

        kernels::layer_norm_forward<double>(rows, n, stride, x.data(), gamma.data(), beta.data(), eps, residual.data(),
                                            sum.data(), mean.data(), scale.data());
        Guarded fresidual(residual, 2), fsum(before, 0), again(before, 1);
        kernels::layer_norm_forward(rows, n, stride, fx.data(), fgamma.data(), fbeta.data(), eps, fresidual.data(),
                                    fsum.data(), fmean.data(), fscale.data());
        require_close("y + residual", fsum, sum, bound);
        kernels::layer_norm_again(rows, n, stride, fx.data(), fgamma.data(), fbeta.data(), fmean.data(), fscale.data(),
                                  again.data());
        for (Index i = 0; i < size; ++i) BOOST_REQUIRE_EQUAL(again[i], fy[i]);
        BOOST_REQUIRE(again.guards_unchanged());

        for (const Update update : {Update::assign, Update::accumulate}) {
          std::vector<double> dx(before);
          Guarded fdy(dy, 1), fdx(before, 3);
          kernels::layer_norm_backward<double>(rows, n, stride, x.data(), gamma.data(), mean.data(), scale.data(),
                                               dy.data(), update, dx.data());
          kernels::layer_norm_backward(rows, n, stride, fx.data(), fgamma.data(), fmean.data(), fscale.data(),
                                       fdy.data(), update, fdx.data());
          require_close("dx", fdx, dx, [&](std::size_t i) { return bound(i) * row_scale(i); });
        }
      }
}

// What is done to a row depends on nothing but the row.
BOOST_AUTO_TEST_CASE(the_rows_beside_it_make_no_difference_to_a_row) {
  const Index n = 50, rows = 7;
  const auto x = normal_floats(rows * n, 1), gamma = normal_floats(n, 2), dy = normal_floats(rows * n, 3);
  Guarded fx(x, 1), fgamma(gamma, 2), fdy(dy, 0), y(rows * n, 3), dx(rows * n, 0), mean(rows, 0), scale(rows, 1);
  kernels::layer_norm_forward(rows, n, n, fx.data(), fgamma.data(), fgamma.data(), 1e-6, nullptr, y.data(), mean.data(),
                              scale.data());
  kernels::layer_norm_backward(rows, n, n, fx.data(), fgamma.data(), mean.data(), scale.data(), fdy.data(),
                               Update::assign, dx.data());
  for (Index r = 0; r < rows; ++r) {
    Guarded row_y(n, 1), row_dx(n, 1), row_mean(1, 0), row_scale(1, 0);
    kernels::layer_norm_forward(1, n, n, fx.data() + r * n, fgamma.data(), fgamma.data(), 1e-6, nullptr, row_y.data(),
                                row_mean.data(), row_scale.data());
    kernels::layer_norm_backward(1, n, n, fx.data() + r * n, fgamma.data(), row_mean.data(), row_scale.data(),
                                 fdy.data() + r * n, Update::assign, row_dx.data());
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
        const auto x = normal_floats(rows * n, 1), dy = normal_floats(rows * n, 2), mean = normal_floats(rows, 3);
        const auto scale = normal_floats(rows, 4);
        auto dgamma = normal_floats(n, 5), dbeta = normal_floats(n, 6);
        Guarded fx(x, 1), fdy(dy, 2), fmean(mean, 0), fscale(scale, 0), fdgamma(dgamma, 1), fdbeta(dbeta, 3);
        kernels::layer_norm_parameter_gradients<double>(rows, n, n, x.data(), mean.data(), scale.data(), dy.data(),
                                                        update, dgamma.data(), dbeta.data());
        kernels::layer_norm_parameter_gradients(rows, n, n, fx.data(), fmean.data(), fscale.data(), fdy.data(), update,
                                                fdgamma.data(), fdbeta.data());
        require_close("dgamma", fdgamma, dgamma, [&](std::size_t) { return 1e-6 * static_cast<double>(rows + 10); });
        require_close("dbeta", fdbeta, dbeta, [&](std::size_t) { return 2e-7 * static_cast<double>(rows + 10); });
      }
}

BOOST_AUTO_TEST_CASE(nan_is_seen) {
  Guarded x(40, 1, 0.5f), one(20, 0, 1.0f), y(40, 1), mean(2, 0), scale(2, 0);
  x.data()[19] = NAN;
  kernels::layer_norm_forward(2, 20, 20, x.data(), one.data(), one.data(), 1e-6, nullptr, y.data(), mean.data(),
                              scale.data());
  for (Index i = 0; i < 20; ++i) BOOST_REQUIRE(std::isnan(y[i]));
  for (Index i = 20; i < 40; ++i) BOOST_REQUIRE(y[i] == 1.0f);
}

BOOST_AUTO_TEST_SUITE_END()
