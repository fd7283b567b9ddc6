#include "heed/kernels/elements/activation.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_activation)

// [-12, 12] suffices: beyond it gelu is x or 0 within the bound.
BOOST_AUTO_TEST_CASE(gelu_is_within_its_bound_on_a_fine_grid) {
  const Index n = 240'001;
  std::vector<double> x(n), y(n), dx(n), one(n, 1.0);
  for (Index i = 0; i < n; ++i) x[i] = static_cast<float>(-12 + 1e-4 * static_cast<double>(i));
  kernels::reference::gelu_forward(n, x.data(), y.data());
  kernels::reference::gelu_backward(n, x.data(), one.data(), Update::assign, dx.data());
  Guarded fx(x, 0), fy(n, 0), fdx(n, 0), fone(one, 0);
  kernels::gelu_forward(n, fx.data(), fy.data());
  kernels::gelu_backward(n, fx.data(), fone.data(), Update::assign, fdx.data());
  require_close("gelu", fy, y, [&](std::size_t i) { return 4e-7 * std::max(1.0, std::abs(x[i])); });
  require_close("gelu'", fdx, dx, [](std::size_t) { return 1e-6; });
}

BOOST_AUTO_TEST_CASE(gelu_at_every_length_and_offset) {
  for (const Index n : lengths)
    for (const Index offset : {0, 1, 3}) {
      const auto x = normal_floats(n, 1, 2), dy = normal_floats(n, 2), before = normal_floats(n, 3);
      Guarded fx(x, offset), fdy(dy, offset + 1), fy(n, offset);
      std::vector<double> y(x);
      kernels::reference::gelu_forward(n, x.data(), y.data());
      kernels::gelu_forward(n, fx.data(), fy.data());
      require_close("gelu", fy, y, [&](std::size_t i) { return 4e-7 * std::max(1.0, std::abs(x[i])); });
      for (const Update update : {Update::assign, Update::accumulate}) {
        std::vector<double> dx(before);
        Guarded fdx(before, offset);
        kernels::reference::gelu_backward(n, x.data(), dy.data(), update, dx.data());
        Guarded again(n, offset + 2);
        kernels::gelu_backward(n, fx.data(), fdy.data(), update, fdx.data(),
                               update == Update::assign ? again.data() : nullptr);
        for (Index i = 0; i < n && update == Update::assign; ++i) BOOST_REQUIRE_EQUAL(again[i], fy[i]);
        BOOST_REQUIRE(again.guards_unchanged());
        require_close("gelu'", fdx, dx,
                      [&](std::size_t i) { return 1e-6 * std::abs(dy[i]) + 2e-7 * std::abs(before[i]); });
      }
      kernels::gelu_forward(n, fx.data(), fx.data());
      require_close("gelu in place", fx, y, [&](std::size_t i) { return 4e-7 * std::max(1.0, std::abs(x[i])); });
    }
}

BOOST_AUTO_TEST_CASE(gelu_of_special_values) {
  Guarded x({INFINITY, 0.0, -0.0, NAN, 1e4, -1e4, 1e15, -1e15}, 1);
  Guarded y(8, 0), dx(7, 0), one(7, 0, 1.0f);
  kernels::gelu_forward(8, x.data(), y.data());
  require_close("gelu", y, {INFINITY, 0, 0, NAN, 1e4, 0, static_cast<float>(1e15), 0}, [](std::size_t) { return 0; });
  kernels::gelu_backward(7, x.data() + 1, one.data(), Update::assign, dx.data());
  require_close("gelu'", dx, {0.5, 0.5, NAN, 1, 0, 1, 0}, [](std::size_t) { return 2e-7; });
}

#ifndef HEED_NO_SIMD
BOOST_AUTO_TEST_CASE(gelu_of_minus_infinity_is_zero) {
  Guarded x(5, 1, -INFINITY), y(5, 0);
  kernels::gelu_forward(5, x.data(), y.data());
  require_close("gelu", y, std::vector<double>(5, 0.0), [](std::size_t) { return 0; });
}
#endif

// Checks that the backward pass recomputes the forward pass's result within a relative `tolerance`, which is 0 for gelu
// and relu, and that this does not change dx.
template <class Forward, class Backward>
void check_again(const Forward& forward, const Backward& backward, double tolerance) {
  const auto x = normal_floats(50, 1, 3), dy = normal_floats(50, 2);
  std::vector<double> y(50), again(50), dx(50), dx_alone(50);
  forward(50, x.data(), y.data());
  backward(50, x.data(), dy.data(), Update::assign, dx.data(), again.data());
  backward(50, x.data(), dy.data(), Update::assign, dx_alone.data(), nullptr);
  BOOST_TEST(dx == dx_alone, boost::test_tools::per_element());
  for (std::size_t i = 0; i < y.size(); ++i) BOOST_TEST(std::abs(again[i] - y[i]) <= tolerance * std::abs(y[i]));
}

BOOST_AUTO_TEST_CASE(results_made_again) {
  check_again(kernels::reference::gelu_forward<double>, kernels::reference::gelu_backward<double>, 0);
  check_again(kernels::relu_forward<double>, kernels::relu_backward<double>, 0);
  check_again(kernels::logistic_forward<kernels::Silu, double>, kernels::logistic_backward<kernels::Silu, double>,
              4e-16);
}

BOOST_AUTO_TEST_SUITE_END()
