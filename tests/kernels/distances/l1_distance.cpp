// The l1 kernels compared with their formulas, evaluated element by element in double.
#include "heed/kernels/distances/l1_distance.h"

#include "heed/cost/counted.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <vector>

using namespace heed;

namespace {

/// Two matrices and a cotangent, in rows with padding.
template <class T>
struct DistanceProblem {
  Index rows, terms, width, ldx, ldw, ldg;
  std::vector<T> x, w, g, g_transposed;

  DistanceProblem(Index rows, Index terms, Index width, double spread)
      : rows(rows), terms(terms), width(width), ldx(width + 3), ldw(width + 1), ldg(std::max(rows, terms) + 2) {
    const RandomStream random(7);
    const auto draw = [&](const char* name, Index count) {
      std::vector<T> values(static_cast<std::size_t>(count));
      for (Index i = 0; i < count; ++i)
        values[static_cast<std::size_t>(i)] =
            static_cast<T>(static_cast<float>(random.derive(name).uniform(i, -spread, spread)));
      return values;
    };
    x = draw("x", rows * ldx), w = draw("w", terms * ldw), g = draw("g", rows * ldg);
    g_transposed.resize(static_cast<std::size_t>(terms * ldg));
    for (Index r = 0; r < rows; ++r)
      for (Index t = 0; t < terms; ++t) at(g_transposed, t * ldg + r) = at(g, r * ldg + t);
  }

  static T& at(std::vector<T>& v, Index i) { return v[static_cast<std::size_t>(i)]; }
  Matrix<const T> mx() const { return {x.data(), rows, width, ldx}; }
  Matrix<const T> mw() const { return {w.data(), terms, width, ldw}; }
  Operand<T> mg(bool as_transpose) const {
    const Matrix<const T> plain(g.data(), rows, terms, ldg), turned(g_transposed.data(), terms, rows, ldg);
    return as_transpose ? Operand<T>(transposed(turned)) : Operand<T>(plain);
  }
  double u(Index r, Index t, Index i) const {
    return static_cast<double>(mw()(t, i)) - static_cast<double>(mx()(r, i));
  }
};

double f(DistanceGradient gradient, double u) {
  if (gradient == DistanceGradient::sign) return u > 0 ? 1 : u < 0 ? -1 : 0;
  return gradient == DistanceGradient::hardtanh ? std::clamp(u, -1.0, 1.0) : u;
}

constexpr DistanceGradient gradients[] = {DistanceGradient::sign, DistanceGradient::hardtanh, DistanceGradient::full};
constexpr Index widths[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 64, 67, 131};

/// Runs f(problem) in shapes around the widths of vectors and blocks.
template <class T, class F>
void for_problems(const F& run) {
  for (const Index width : widths)
    for (const auto& [rows, terms] :
         {std::pair<Index, Index>{1, 1}, {1, 6}, {5, 1}, {3, 4}, {6, 19}, {21, 13}, {2, 261}})
      run(DistanceProblem<T>(rows, terms, width, 2));
}

/// Checks the error relative to 1 + the distance or, for the kernel that computes it from maxima, to 1 + |x|_1 + |w|_1.
template <class T>
void check_distances(bool by_maxima, double tolerance) {
  for_problems<T>([=](const DistanceProblem<T>& p) {
    for (const bool biased : {false, true}) {
      if (biased && !by_maxima) continue;
      std::vector<T> result(static_cast<std::size_t>(p.rows * p.ldg), T(0.5)), bias(static_cast<std::size_t>(p.terms));
      for (Index t = 0; t < p.terms; ++t) DistanceProblem<T>::at(bias, t) = T(0.25 * static_cast<double>(t % 5));
      const Matrix<T> s(result.data(), p.rows, p.terms, p.ldg);
      if (by_maxima)
        kernels::negative_l1_by_maxima(p.mx(), p.mw(), biased ? bias.data() : nullptr, s);
      else
        kernels::negative_l1(p.mx(), p.mw(), s);
      double worst = 0;
      for (Index r = 0; r < p.rows; ++r) {
        for (Index t = 0; t < p.terms; ++t) {
          double expected = biased ? static_cast<double>(DistanceProblem<T>::at(bias, t)) : 0, scale = 1;
          for (Index i = 0; i < p.width; ++i) {
            const double x = static_cast<double>(p.mx()(r, i)), u = p.u(r, t, i);
            expected -= std::abs(u), scale += by_maxima ? std::abs(x) + std::abs(x + u) : std::abs(u);
          }
          worst = std::max(worst, std::abs(static_cast<double>(s(r, t)) - expected) / scale);
        }
        for (Index beyond = p.terms; beyond < p.ldg; ++beyond) BOOST_REQUIRE(s(r, beyond) == T(0.5));
      }
      BOOST_TEST(worst <= tolerance, p.rows << " x " << p.terms << " x " << p.width << ": off by " << worst);
    }
  });
}

template <class T>
void check_gradients(double tolerance) {
  for_problems<T>([=](const DistanceProblem<T>& p) {
    for (const DistanceGradient gradient : gradients)
      for (const bool as_transpose : {false, true})
        for (const Update update : {Update::assign, Update::accumulate}) {
          std::vector<T> dx(static_cast<std::size_t>(p.rows * p.ldx), T(0.5));
          kernels::negative_l1_gradient(gradient, p.mx(), p.mw(), p.mg(as_transpose), update,
                                        Matrix<T>(dx.data(), p.rows, p.width, p.ldx));
          double worst = 0;
          for (Index r = 0; r < p.rows; ++r)
            for (Index i = 0; i < p.ldx; ++i) {
              double expected = update == Update::assign && i < p.width ? 0 : 0.5, scale = 1;
              for (Index t = 0; t < p.terms && i < p.width; ++t) {
                const double g = static_cast<double>(p.mg(false)(r, t));
                expected += g * f(gradient, p.u(r, t, i)), scale += 4 * std::abs(g);
              }
              worst = std::max(
                  worst, std::abs(static_cast<double>(dx[static_cast<std::size_t>(r * p.ldx + i)]) - expected) / scale);
            }
          BOOST_TEST(worst <= tolerance, "gradient " << static_cast<int>(gradient) << ", " << p.rows << " x " << p.terms
                                                     << " x " << p.width << ": off by " << worst);
        }
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(l1_distance)

BOOST_AUTO_TEST_CASE(distances_are_the_formulas) {
  for (const bool by_maxima : {false, true}) {
    check_distances<double>(by_maxima, 1e-15);
    check_distances<float>(by_maxima, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(gradients_are_the_formulas) {
  check_gradients<double>(1e-14);
  check_gradients<float>(2e-6);
}

/// Compares negative_l1_by_maxima() with distances in double: rows are `spread` times N(0, 1) around `origin`, with
/// w[3] equal to x[2].
void check_around(double origin, double spread, const auto& bound) {
  for (const Index width : {1, 15, 17, 192, 300})
    for (const Index terms : {4, 5, 261})
      for (const bool biased : {false, true}) {
        constexpr Index rows = 7;
        std::vector<float> x, w, bias, s(static_cast<std::size_t>(rows * terms));
        for (Index i = 0; i < rows * width; ++i)
          x.push_back(static_cast<float>(origin + spread * RandomStream(1).normal(static_cast<std::uint64_t>(i))));
        for (Index i = 0; i < terms * width; ++i)
          w.push_back(static_cast<float>(origin + spread * RandomStream(2).normal(static_cast<std::uint64_t>(i))));
        for (Index t = 0; t < terms; ++t)
          bias.push_back(static_cast<float>(RandomStream(3).normal(static_cast<std::uint64_t>(t))));
        std::copy_n(x.begin() + 2 * width, width, w.begin() + 3 * width);
        kernels::negative_l1_by_maxima({x.data(), rows, width}, {w.data(), terms, width},
                                       biased ? bias.data() : nullptr, Matrix<float>(s.data(), rows, terms));
        for (Index r = 0; r < rows; ++r)
          for (Index t = 0; t < terms; ++t) {
            double distance = 0, lengths = 0;
            for (Index i = 0; i < width; ++i) {
              const double a = DistanceProblem<float>::at(x, r * width + i),
                           b = DistanceProblem<float>::at(w, t * width + i);
              distance += std::abs(a - b), lengths += std::abs(a) + std::abs(b);
            }
            const double of_bias = biased ? DistanceProblem<float>::at(bias, t) : 0;
            const double error = std::abs(DistanceProblem<float>::at(s, r * terms + t) - (of_bias - distance));
            BOOST_REQUIRE_MESSAGE(
                error <= bound(static_cast<double>(width), distance, lengths, of_bias),
                "around " << origin << ", width " << width << ": s[" << r << "," << t << "] is off by " << error);
          }
      }
}

// The bounds of the contract hold near the origin and far from it.
BOOST_AUTO_TEST_CASE(distances_far_from_the_origin) {
  constexpr double eps = 0x1p-23;
  const auto by_maxima = [](double width, double, double lengths, double bias) {
    return 2 * width * eps * lengths + 3 * eps * std::abs(bias);
  };
  const auto by_differences = [](double width, double distance, double, double bias) {
    return width * eps * distance + eps * (std::abs(bias - distance) + std::abs(bias));
  };
  check_around(0, 1, by_maxima);
  check_around(3, 1, by_maxima);
  check_around(-3, 100, by_maxima);
  for (const double origin : {1000.0, -1000.0, 30.0, 1e6}) check_around(origin, 1, by_differences);
  check_around(1e36, 1e33, by_differences);
}

// Differences of 0, where sign jumps, of +-1, where hardtanh has kinks, and of +-2.
BOOST_AUTO_TEST_CASE(corners) {
  const float x[] = {1, 1, 1, 1, 1}, w[] = {1, 2, 0, 3, -1}, g = 2;
  const float expected[3][5] = {{0, 2, -2, 2, -2}, {0, 2, -2, 2, -2}, {0, 2, -2, 4, -4}};
  for (const DistanceGradient gradient : gradients) {
    float dx[5];
    kernels::negative_l1_gradient(gradient, Matrix(x, 1, 5), Matrix(w, 1, 5), Matrix(&g, 1, 1), Update::assign,
                                  Matrix(dx, 1, 5));
    BOOST_TEST(dx == expected[static_cast<int>(gradient)], boost::test_tools::per_element());
  }
}

// Distances near the ends of float's range: 3e38 does not overflow, and 2e-38 is not lost.
BOOST_AUTO_TEST_CASE(large_and_tiny_numbers) {
  const float x[] = {1e38f, -1e38f, 1e-38f}, w[] = {-1e38f, 0, -1e-38f};
  float s = 0, near = 0;
  kernels::negative_l1(Matrix(x, 1, 2), Matrix(w, 1, 2), Matrix(&s, 1, 1));
  kernels::negative_l1(Matrix(x + 2, 1, 1), Matrix(w + 2, 1, 1), Matrix(&near, 1, 1));
  BOOST_TEST(s == -3e38f, boost::test_tools::tolerance(1e-6f));
  BOOST_TEST(near == -2e-38f, boost::test_tools::tolerance(1e-6f));
}

BOOST_AUTO_TEST_CASE(counts_are_as_stated) {
  const Index rows = 3, terms = 4, width = 5;
  std::vector<Counted> numbers(20, 1.0), other(20, 2.0), weights(12, 3.0), result(15);
  const Matrix<const Counted> x(numbers.data(), rows, width), w(other.data(), terms, width);
  const Matrix<const Counted> g(weights.data(), rows, terms);
  const auto count = [](const auto& run) {
    Counted::tally() = {};
    run();
    return Counted::tally();
  };
  const Matrix<Counted> s(result.data(), rows, terms), dx(result.data(), rows, width);
  const Counts distances = kernels::negative_l1_counts(rows * terms, width);
  BOOST_TEST((distances == Counts{.add = rows * terms * (2 * width - 1), .cmp = rows * terms * width}));
  BOOST_TEST((count([&] { kernels::negative_l1(x, w, s); }) == distances));
  BOOST_TEST(
      (count([&] { kernels::negative_l1_by_maxima(x, w, g.data, s); }) == distances + Counts{.add = rows * terms}));
  for (const DistanceGradient gradient : gradients) {
    const Counts stated = kernels::negative_l1_gradient_counts(gradient, rows, terms, width);
    BOOST_TEST((count([&] { kernels::negative_l1_gradient(gradient, x, w, g, Update::assign, dx); }) == stated));
    BOOST_TEST((count([&] { kernels::negative_l1_gradient(gradient, x, w, g, Update::accumulate, dx); }) ==
                stated + Counts{.add = rows * width}));
  }
  BOOST_TEST((kernels::negative_l1_gradient_counts(DistanceGradient::full, rows, terms, width) ==
              Counts{.mul = rows * width * (terms + 1), .add = rows * width * terms + rows * (terms - 1)}));
}

BOOST_AUTO_TEST_SUITE_END()
