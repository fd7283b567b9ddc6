#include "heed/kernels/elements/elu.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_elu)

BOOST_AUTO_TEST_CASE(float_agrees_with_double_at_every_length) {
  for (const Index n : lengths) {
    const auto x = normal_floats(n, 1, 4), dy = normal_floats(n, 2);
    std::vector<double> y(x), dx(x);
    Guarded fx(x, 1), fdy(dy, 2), fy(n, 3), fdx(x, 0);
    kernels::elu_plus_1_forward(n, x.data(), y.data());
    kernels::elu_plus_1_forward(n, fx.data(), fy.data());
    require_close("y", fy, y, [&](std::size_t i) { return 1e-6 * y[i]; });
    for (const Update update : {Update::assign, Update::accumulate}) {
      kernels::elu_plus_1_backward(n, y.data(), dy.data(), update, dx.data());
      kernels::elu_plus_1_backward(n, fy.data(), fdy.data(), update, fdx.data());
      require_close("dx", fdx, dx, [&](std::size_t i) { return 2e-6 * (std::abs(dx[i]) + std::abs(dy[i])); });
    }
  }
}

BOOST_AUTO_TEST_CASE(special_numbers) {
  Guarded x({0, 1e30, -1e30, NAN, -INFINITY, INFINITY}, 1), y(6, 0), dx(6, 2);
  kernels::elu_plus_1_forward(6, x.data(), y.data());
  require_close("y", y, {1, 1e30f, 0, NAN, 0, INFINITY}, [](std::size_t) { return 0; });
  const Guarded dy({2, 2, 2, 2, 2, 2}, 0);
  kernels::elu_plus_1_backward(5, y.data(), Guarded(dy).data(), Update::assign, dx.data());
  require_close("dx", dx, {2, 2, 0, NAN, 0, 0}, [](std::size_t) { return 0; });
}

BOOST_AUTO_TEST_SUITE_END()
