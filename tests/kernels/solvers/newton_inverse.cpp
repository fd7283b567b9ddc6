// The Newton-Raphson inverse: limit, rate of convergence, and both gradients.
#include "heed/cost/counted.h"
#include "heed/kernels/distances/gaussian.h"
#include "heed/kernels/solvers/newton_inverse.h"
#include "heed/kernels/rows/row_sums.h"
#include "heed/base/random.h"

#include "support/compare.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;
using namespace heed::test;
using kernels::NewtonInverse;
using kernels::NewtonStart;

namespace {

constexpr NewtonStart starts[] = {NewtonStart::damped, NewtonStart::plain, NewtonStart::backtrack};

/// Returns the elements as an m x m matrix.
template <class T>
Matrix<T> square(Index m, std::vector<T>& numbers) {
  return {numbers.data(), m, m};
}
template <class T>
Matrix<const T> square(Index m, const std::vector<T>& numbers) {
  return {numbers.data(), m, m};
}

/// Returns the Gaussian kernel matrix of m rows drawn from U(-spread, spread)^3.
std::vector<double> gram(Index m, double spread) {
  std::vector<double> x(m * 3), A(m * m);
  for (Index i = 0; i < m * 3; ++i) x[i] = RandomStream(11).uniform(i, -spread, spread);
  const Matrix<const double> rows(x.data(), m, 3);
  kernels::gaussian(rows, rows, 0.5, square(m, A));
  return A;
}

std::vector<double> product(Index m, const std::vector<double>& a, const std::vector<double>& b) {
  std::vector<double> c(m * m);
  kernels::gemm(square(m, a), square(m, b), square(m, c));
  return c;
}

/// Returns I - A X.
std::vector<double> residual(Index m, const std::vector<double>& A, const std::vector<double>& X) {
  std::vector<double> r = product(m, A, X);
  for (Index i = 0; i < m * m; ++i) r[i] = (i / m == i % m ? 1 : 0) - r[i];
  return r;
}

double largest(const std::vector<double>& a) {
  double most = 0;
  for (const double x : a) most = std::max(most, std::abs(x));
  return most;
}

template <class T>
std::vector<T> invert(const NewtonInverse& s, const std::vector<T>& A) {
  std::vector<T> X(A.size());
  const LaidOut<kernels::NewtonScratch, T> scratch(s);
  kernels::newton_inverse(s, square(s.m, A), *scratch, square(s.m, X));
  return X;
}

template <class T>
std::vector<T> backward(const NewtonInverse& s, const std::vector<T>& A, std::vector<T> dX) {
  std::vector<T> dA(A.size());
  const LaidOut<kernels::NewtonBackwardScratch, T> scratch(s);
  kernels::newton_inverse_backward(s, square(s.m, A), square(s.m, dX), *scratch, square(s.m, dA));
  return dA;
}

std::vector<double> cotangent(Index count) {
  std::vector<double> values(count);
  for (Index i = 0; i < count; ++i) values[i] = RandomStream(5).uniform(i, -1, 1);
  return values;
}

/// Returns A^-1 by Gauss-Jordan elimination with pivots.
std::vector<double> dense_inverse(Index m, std::vector<double> A) {
  std::vector<double> X(m * m, 0.0);
  for (Index i = 0; i < m; ++i) X[i * m + i] = 1;
  for (Index c = 0; c < m; ++c) {
    Index pivot = c;
    for (Index r = c; r < m; ++r)
      if (std::abs(A[r * m + c]) > std::abs(A[pivot * m + c])) pivot = r;
    for (auto* matrix : {&A, &X})
      std::swap_ranges(matrix->begin() + c * m, matrix->begin() + (c + 1) * m, matrix->begin() + pivot * m);
    const double scale = 1 / A[c * m + c];
    for (auto* matrix : {&A, &X})
      for (Index j = 0; j < m; ++j) (*matrix)[c * m + j] *= scale;
    for (Index r = 0; r < m; ++r) {
      const double factor = r == c ? 0 : A[r * m + c];
      for (auto* matrix : {&A, &X})
        for (Index j = 0; j < m; ++j) (*matrix)[r * m + j] -= factor * (*matrix)[c * m + j];
    }
  }
  return X;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(newton_inverse)

BOOST_AUTO_TEST_CASE(the_residual_squares_in_each_step) {
  const Index m = 9;
  const auto A = gram(m, 2);
  for (const NewtonStart start : starts) {
    std::vector<double> before = residual(m, A, invert({m, 0, start}, A));
    for (Index steps = 1; steps <= 12; ++steps) {
      const std::vector<double> after = residual(m, A, invert({m, steps, start}, A));
      BOOST_TEST(largest_difference(after, product(m, before, before)) < 1e-12);
      before = after;
    }
  }
}

BOOST_AUTO_TEST_CASE(converged_it_is_the_inverse) {
  for (const Index m : {2, 5, 16, 33}) {
    const auto A = gram(m, 4), expected = dense_inverse(m, A);
    for (const NewtonStart start : {NewtonStart::damped, NewtonStart::backtrack}) {
      if (m == 2 && start == NewtonStart::backtrack) continue;  // stalls for two distant landmarks
      const auto X = invert({m, 40, start}, A);
      BOOST_TEST(largest_difference(X, expected) < 1e-10 * largest(expected));
    }
  }
}

// All landmarks equal: A = 1 1^T, whose pseudo-inverse is 1 1^T / m^2.
BOOST_AUTO_TEST_CASE(a_singular_matrix_has_its_pseudo_inverse) {
  const Index m = 6;
  const std::vector<double> A(m * m, 1.0);
  for (const double x : invert<double>({m, 20, NewtonStart::damped}, A)) BOOST_TEST(std::abs(x - 1.0 / 36) < 1e-10);
  const std::vector<float> ones(m * m, 1.0f);
  for (const float x : invert<float>({m, 20, NewtonStart::damped}, ones)) BOOST_TEST(std::abs(x - 1.0 / 36) < 2e-3);
}

// A = 1: X_0 = 2, X_1 = 2 2 - 2 2 = 0, and X stays 0. Backtracking accepts |1 - 2| = 1 and stalls too. Two landmarks
// far apart stall as well: both rows of A have the sum |A| = 1 + g, an eigenvalue, and |I - a A A| = 1 + O(g) is
// accepted.
BOOST_AUTO_TEST_CASE(one_landmark_stalls_the_undamped_start) {
  const std::vector<double> one{1};
  BOOST_TEST(invert({1, 20, NewtonStart::plain}, one)[0] == 0);
  BOOST_TEST(invert({1, 20, NewtonStart::backtrack}, one)[0] == 0);
  BOOST_TEST(std::abs(invert({1, 20, NewtonStart::damped}, one)[0] - 1) < 1e-12);
  const std::vector<double> pair{1, 0.001, 0.001, 1};
  BOOST_TEST(std::abs(invert({2, 20, NewtonStart::backtrack}, pair)[0] - 0.5) < 0.01);
  BOOST_TEST(std::abs(invert({2, 20, NewtonStart::damped}, pair)[0] - 1) < 1e-5);
}

// A has row sums 2, 1.5 and 1.5. After n halvings a = 0.5 / 2^n; the norm of I - a A A is at most 1.01 from n = 5 on.
BOOST_AUTO_TEST_CASE(backtracking_halves_until_the_residual_is_small) {
  const std::vector<double> A{1, 0.5, 0.5, 0.5, 1, 0, 0.5, 0, 1};
  std::vector<double> scratch(9);
  const auto at = [&](NewtonStart start) {
    return kernels::newton_factor({3, 0, start}, square(3, A), square(3, scratch));
  };
  BOOST_TEST(at(NewtonStart::plain).value == 0.5);
  BOOST_TEST(at(NewtonStart::plain).norm == 2);
  BOOST_TEST(at(NewtonStart::plain).row == 0);
  BOOST_TEST(at(NewtonStart::damped).value == 1.8 / 4);
  // A A = [1.5 1 1; 1 1.25 0.25; 1 0.25 1.25]: the first column of I - a A A has the sum |1 - 1.5 a| + 2 a, which
  // is 1.25 for a = 1/2, 1.125 for 1/4, 1.0625 for 1/8, 1.03125 for 1/16, 1.015625 for 1/32, and 1.0078125 for 1/64.
  BOOST_TEST(at(NewtonStart::backtrack).value == 1.0 / 64);
}

BOOST_AUTO_TEST_CASE(the_unrolled_gradient_is_exact_for_any_number_of_iterations) {
  for (const Index m : {1, 2, 5})
    for (const double spread : {0.5, 2.0})  // close landmarks, far from convergence; and distant ones
      for (const NewtonStart start : starts)
        for (const Index iterations : {0, 1, 2, 3, 7, 15, 20, 30}) {
          if (m == 1 && start != NewtonStart::damped) continue;  // stalls at 0, where rounding errors grow
          const NewtonInverse s{m, iterations, start};
          auto A = gram(m, spread);
          for (Index i = 0; i < m; ++i) A[i * m + i] += 0.01 * static_cast<double>(i);  // a unique largest row
          const auto dX = cotangent(m * m), dA = backward(s, A, dX);
          const auto value = [&] {
            const auto X = invert(s, A);
            double sum = 0;
            for (Index i = 0; i < m * m; ++i) sum += dX[i] * X[i];
            return sum;
          };
          const double floor = std::max(1e-3 * largest(dA), 1e-6);
          for (Index i = 0; i < m * m; ++i) {
            const auto difference = [&, centre = A[i]](double h) {
              A[i] = centre + h;
              const double above = value();
              A[i] = centre - h;
              const double below = value();
              A[i] = centre;
              return (above - below) / (2 * h);
            };
            const double h = 1e-5, expected = (4 * difference(h / 2) - difference(h)) / 3;
            BOOST_TEST(std::abs(dA[i] - expected) <= 1e-5 * std::max(std::abs(expected), floor),
                       "m " << m << ", spread " << spread << ", start " << static_cast<int>(start) << ", " << iterations
                            << " iterations, element " << i << ": " << dA[i] << ", expected " << expected);
          }
        }
}

// Compares dA + dA^T, as only the symmetric part of dA is specified. After seven steps from close landmarks no error
// has grown yet: each of about 30 successive products adds at most m 2^-24, relative to |D| and similar norms.
BOOST_AUTO_TEST_CASE(the_fast_gradient_is_that_of_the_plain_formula) {
  for (const Index m : {1, 7, 8, 16, 17, 40, 64, 70})
    for (const Index iterations : {0, 1, 7}) {
      const NewtonInverse s{m, iterations, NewtonStart::damped};
      const auto A = gram(m, 0.5), dX = cotangent(m * m), expected = backward(s, A, dX);
      const auto dA = backward<float>(s, {A.begin(), A.end()}, {dX.begin(), dX.end()});
      double most = 0, difference = 0;
      for (Index i = 0; i < m; ++i)
        for (Index j = 0; j < m; ++j) {
          const Index here = i * m + j, mirrored = j * m + i;
          const double sum = expected[here] + expected[mirrored];
          most = std::max(most, std::abs(sum));
          difference = std::max(difference, std::abs(dA[here] + dA[mirrored] - sum));
        }
      const double bound = 30 * static_cast<double>(m) * 0x1p-24 * most;
      BOOST_TEST(difference <= bound,
                 m << " landmarks, " << iterations << " steps: off by " << difference << ", not by at most " << bound);
    }
}

BOOST_AUTO_TEST_CASE(the_implicit_gradient_is_the_unrolled_one_once_converged) {
  const Index m = 7;
  const NewtonInverse converged{m, 40, NewtonStart::damped}, early{m, 5, NewtonStart::damped};
  const auto A = gram(m, 2), dX = cotangent(m * m);
  std::vector<double> implicit(m * m), scratch(m * m);
  const auto difference = [&](const NewtonInverse& s) {
    const auto X = invert(s, A);
    kernels::inverse_backward(square(m, X), square(m, dX), square(m, scratch), square(m, implicit));
    return largest_difference(implicit, backward(s, A, dX)) / largest(implicit);
  };
  BOOST_TEST(difference(converged) < 1e-9);
  BOOST_TEST(difference(early) > 1e-2);
}

BOOST_AUTO_TEST_CASE(the_gradient_of_the_scaled_inverse) {
  const Index m = 4;
  auto A = gram(m, 2), X = gram(m, 1);
  const auto dscaled = cotangent(m * m);
  std::vector<double> scaled(m * m), root(m), dE(m), dX = dscaled;
  const auto value = [&] {
    kernels::scale_inverse(square(m, A), square(m, X), Matrix(root.data(), m, 1), square(m, scaled));
    double sum = 0;
    for (Index i = 0; i < m * m; ++i) sum += dscaled[i] * scaled[i];
    return sum;
  };
  const auto difference = [&](double& x) {
    const double centre = x, h = 1e-5;
    x = centre + h;
    const double above = value();
    x = centre - h;
    const double below = value();
    x = centre;
    return (above - below) / (2 * h);
  };
  value();
  kernels::scale_inverse_backward(Matrix(root.data(), m, 1), square(m, scaled), square(m, dX), Matrix(dE.data(), m, 1));
  for (Index i = 0; i < m * m; ++i) {
    BOOST_TEST(std::abs(dX[i] - difference(X[i])) < 1e-9);
    BOOST_TEST(std::abs(dE[i / m] - difference(A[i])) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(counts) {
  const Index m = 4;
  const auto A = gram(m, 2), dX = cotangent(m * m);
  for (const NewtonStart start : starts)
    for (const Index iterations : {0, 1, 5}) {
      const NewtonInverse s{m, iterations, start};
      const std::vector<Counted> counted(A.begin(), A.end());
      const std::vector<Counted> gradient(dX.begin(), dX.end());
      Counted::tally() = {};
      invert(s, counted);
      BOOST_TEST((Counted::tally() == kernels::newton_inverse_cost(s, true).forward));
      Counted::tally() = {};
      backward(s, counted, gradient);
      BOOST_TEST((Counted::tally() == kernels::newton_inverse_cost(s, true).backward));
    }
}

BOOST_AUTO_TEST_SUITE_END()
