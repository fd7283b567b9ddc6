#include "heed/kernels/rows/weighted_relu.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_weighted_relu)

// x = (2, -1) with the weights (3, 5): f = (6, 0, 10, 0). df = (1, 1, 2, 2): dx = (3 + 10, 0).
BOOST_AUTO_TEST_CASE(by_hand) {
  const std::vector<double> x{2, -1}, w{3, 5};
  std::vector<double> f(4), df{1, 1, 2, 2}, dx{7, 7};
  kernels::weighted_relu<double>(Matrix(x.data(), 1, 2), Matrix(w.data(), 1, 2), Matrix(f.data(), 1, 4));
  BOOST_TEST(f == (std::vector<double>{6, 0, 10, 0}), boost::test_tools::per_element());
  kernels::weighted_relu_backward<double>(Matrix(x.data(), 1, 2), Matrix(w.data(), 1, 2), Matrix(df.data(), 1, 4),
                                          Update::accumulate, Matrix(dx.data(), 1, 2));
  BOOST_TEST(dx == (std::vector<double>{20, 7}), boost::test_tools::per_element());
}

// Without weights f is max(x, 0), and df is passed where x is positive.
BOOST_AUTO_TEST_CASE(without_weights) {
  const std::vector<double> x{2, -1, 0};
  std::vector<double> f(3), df{4, 5, 6}, dx(3);
  kernels::weighted_relu<double>(Matrix(x.data(), 1, 3), {}, Matrix(f.data(), 1, 3));
  BOOST_TEST(f == (std::vector<double>{2, 0, 0}), boost::test_tools::per_element());
  kernels::weighted_relu_backward<double>(Matrix(x.data(), 1, 3), {}, Matrix(df.data(), 1, 3), Update::assign,
                                          Matrix(dx.data(), 1, 3));
  BOOST_TEST(dx == (std::vector<double>{4, 0, 0}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(float_agrees_with_double_at_every_length) {
  const Index rows = 3;
  for (const Index n : lengths)
    for (const Index weights : {0, 1, 2, 4}) {
      const Index copies = std::max<Index>(weights, 1);
      const auto x = normal_floats(rows * (n + 2), 1), w = normal_floats(rows * weights, 2);
      std::vector<double> f(rows * copies * n), df = normal_floats(rows * copies * n, 3), dx(rows * n);
      Guarded fx(x, 1), fw(w, 2), ff(rows * copies * n, 3), fdf(df, 1), fdx(rows * n, 2);
      const auto wide = [=](auto& m) { return Matrix(m.data(), rows, n, n + 2); };
      const auto features = [=](auto& m) { return Matrix(m.data(), rows, copies * n); };
      kernels::weighted_relu<double>(wide(x), Matrix(w.data(), rows, weights), features(f));
      kernels::weighted_relu<float>(wide(fx), Matrix(fw.data(), rows, weights), features(ff));
      require_close("f", ff, f, [&](std::size_t i) { return 1e-7 * f[i] * (f[i] < 0 ? -1 : 1); });
      kernels::weighted_relu_backward<double>(wide(x), Matrix(w.data(), rows, weights), features(df), Update::assign,
                                              Matrix(dx.data(), rows, n));
      kernels::weighted_relu_backward<float>(wide(fx), Matrix(fw.data(), rows, weights), features(fdf), Update::assign,
                                             Matrix(fdx.data(), rows, n));
      require_close("dx", fdx, dx, [&](std::size_t) { return 4e-6; });
    }
}

BOOST_AUTO_TEST_SUITE_END()
