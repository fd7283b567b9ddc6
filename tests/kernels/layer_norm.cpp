#include "heed/kernels/layer_norm.h"

#include "compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_layer_norm)

// Rows with means up to ten times their spread. A mean that is off by n eps |mean| moves every centred value by as
// much, so bounds grow with n.
BOOST_AUTO_TEST_CASE(forward_and_backward) {
  for (const Index n : lengths)
    for (const Index rows : {1, 2, 7}) {
      if (n == 1) continue;  // x = mean: every result is rounding
      auto x = normal_floats(rows * n, 1);
      for (Index i = 0; i < rows * n; ++i) x[i] = static_cast<float>(x[i] + static_cast<double>(i / n % 3) * 5);
      const auto gamma = normal_floats(n, 2), beta = normal_floats(n, 3), dy = normal_floats(rows * n, 4);
      const auto before = normal_floats(rows * n, 5);
      const double eps = 1e-6, tolerance = 1e-6 * static_cast<double>(n + 20);

      std::vector<double> y(rows * n), mean(rows), scale(rows);
      Guarded fx(x, 1), fgamma(gamma, 2), fbeta(beta, 0), fy(rows * n, 3), fmean(rows, 0), fscale(rows, 1);
      kernels::layer_norm_forward<double>(rows, n, x.data(), gamma.data(), beta.data(), eps, y.data(), mean.data(),
                                          scale.data());
      kernels::layer_norm_forward(rows, n, fx.data(), fgamma.data(), fbeta.data(), eps, fy.data(), fmean.data(),
                                  fscale.data());
      const auto row_scale = [&](std::size_t i) { return std::max(1.0, scale[i / static_cast<std::size_t>(n)]); };
      require_close("mean", fmean, mean, [&](std::size_t) { return tolerance; });
      require_close("scale", fscale, scale,
                    [&](std::size_t r) { return tolerance * scale[r] * std::max(1.0, scale[r]); });
      require_close("y", fy, y, [&](std::size_t i) { return 10 * tolerance * row_scale(i); });

      for (const Update update : {Update::assign, Update::accumulate}) {
        std::vector<double> dx(before);
        Guarded fdy(dy, 1), fdx(before, 3);
        kernels::layer_norm_backward<double>(rows, n, x.data(), gamma.data(), mean.data(), scale.data(), dy.data(),
                                             update, dx.data());
        kernels::layer_norm_backward(rows, n, fx.data(), fgamma.data(), fmean.data(), fscale.data(), fdy.data(), update,
                                     fdx.data());
        require_close("dx", fdx, dx, [&](std::size_t i) { return 10 * tolerance * row_scale(i) * row_scale(i); });
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
        kernels::layer_norm_parameter_gradients<double>(rows, n, x.data(), mean.data(), scale.data(), dy.data(), update,
                                                        dgamma.data(), dbeta.data());
        kernels::layer_norm_parameter_gradients(rows, n, fx.data(), fmean.data(), fscale.data(), fdy.data(), update,
                                                fdgamma.data(), fdbeta.data());
        require_close("dgamma", fdgamma, dgamma, [&](std::size_t) { return 1e-6 * static_cast<double>(rows + 10); });
        require_close("dbeta", fdbeta, dbeta, [&](std::size_t) { return 2e-7 * static_cast<double>(rows + 10); });
      }
}

BOOST_AUTO_TEST_CASE(nan_is_seen) {
  Guarded x(40, 1, 0.5f), one(20, 0, 1.0f), y(40, 1), mean(2, 0), scale(2, 0);
  x.data()[19] = NAN;
  kernels::layer_norm_forward(2, 20, x.data(), one.data(), one.data(), 1e-6, y.data(), mean.data(), scale.data());
  for (Index i = 0; i < 20; ++i) BOOST_REQUIRE(std::isnan(y[i]));
  for (Index i = 20; i < 40; ++i) BOOST_REQUIRE(y[i] == 1.0f);
}

BOOST_AUTO_TEST_SUITE_END()
