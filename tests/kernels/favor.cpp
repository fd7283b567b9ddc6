#include "heed/kernels/favor.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_favor)

BOOST_AUTO_TEST_CASE(every_length) {
  const double scale = 0.35;
  for (const Index m : lengths) {
    const Index rows = 7, stride = m + 3;
    const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, m, stride); };
    const auto U = normal_floats(rows * stride, 1, 20), h = normal_floats(rows, 2, 3);
    std::vector<double> maximum(rows), place(rows), F(U), sums(rows);
    Guarded fast_U(U, 1), fast_maximum(rows, 1), fast_place(rows, 2), fast_h(h, 3), fast_sums(rows, 3);
    std::vector<double> half;
    for (const double x : h) half.push_back(std::abs(x));
    for (Index r = 0; r < rows; ++r) fast_h.data()[r] = std::abs(fast_h[r]);
    kernels::reference::favor_maxima<double>(scale, matrix(F), {maximum.data(), place.data()});
    kernels::favor_maxima(scale, matrix(fast_U), {fast_maximum.data(), fast_place.data()});
    require_close("maximum", fast_maximum, maximum, [&](std::size_t r) { return 2e-7 * std::abs(maximum[r]); });
    require_close("place", fast_place, place, [](std::size_t) { return 0.0; });

    for (const double added : {0.0, 1e-4}) {
      std::vector<double> features(U);
      Guarded fast(U, 1);
      kernels::reference::favor_features<double>(scale, maximum.data(), half.data(), added, matrix(features),
                                                 sums.data());
      kernels::favor_features(scale, fast_maximum.data(), fast_h.data(), added, matrix(fast), fast_sums.data());
      const auto of_row = [=](std::size_t i) { return i / static_cast<std::size_t>(stride); };
      const auto bound = [&](std::size_t i) {
        const double argument = std::abs(scale * U[i]) + std::abs(maximum[of_row(i)]) + half[of_row(i)];
        return (features[i] - added) * (3e-7 + 2.4e-7 * argument) + 1.2e-7 * features[i] + 2e-38;
      };
      require_close("features", fast, features, bound);
      require_close("sums", fast_sums, sums, [&](std::size_t r) {
        double error = 6e-8 * static_cast<double>(m) * sums[r];
        for (Index j = 0; j < m; ++j)
          error += bound(r * static_cast<std::size_t>(stride) + static_cast<std::size_t>(j));
        return error;
      });

      const auto gradient = normal_floats(rows * stride, 3);
      std::vector<double> rounded, dF(gradient);
      Guarded fast_dF(gradient, 2);
      for (Index i = 0; i < rows * stride; ++i) rounded.push_back(fast[i]);
      kernels::reference::favor_features_backward<double>(added, matrix(rounded), matrix(dF), sums.data());
      kernels::favor_features_backward(added, matrix(fast), matrix(fast_dF), fast_sums.data());
      const auto error = [&](std::size_t i) { return 1.2e-7 * (rounded[i] + added) * std::abs(gradient[i]); };
      require_close("du", fast_dF, dF, error);
      require_close("sums of du", fast_sums, sums, [&](std::size_t r) {
        double sum = 0;
        for (Index j = 0; j < m; ++j) {
          const auto i = r * static_cast<std::size_t>(stride) + static_cast<std::size_t>(j);
          sum += error(i) + 6e-8 * static_cast<double>(m) * std::abs(dF[i]);
        }
        return sum + 1e-37;
      });
    }
  }
}

// Of equal numbers the first is taken, in the first vector, across vectors and in the last.
BOOST_AUTO_TEST_CASE(the_first_of_equal_maxima) {
  for (const Index m : {3, 40})
    for (Index first = 0; first < m - 1; ++first) {
      Guarded U(m, 1, -2), maximum(1, 0), place(1, 0);
      U.data()[first] = U.data()[m - 1] = 1.5F;
      kernels::favor_maxima(0.25, Matrix<const float>(U.data(), 1, m), {maximum.data(), place.data()});
      BOOST_TEST(place[0] == static_cast<float>(first));
      BOOST_TEST(maximum[0] == 0.375F);
    }
}

BOOST_AUTO_TEST_SUITE_END()
