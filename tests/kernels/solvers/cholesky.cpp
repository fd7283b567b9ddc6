// Systems with symmetric positive definite matrices, solved by LAPACK and by the reference kernel: hand calculations,
// residuals, and matrices that are not positive definite.
#include "heed/kernels/solvers/cholesky.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

namespace {

using Solver = bool (*)(Matrix<double>, Matrix<double>);

/// The solver for double, which is LAPACK's if available, and the reference.
constexpr Solver solvers[] = {
    [](Matrix<double> A, Matrix<double> B) { return kernels::solve_positive(A, B); },
    [](Matrix<double> A, Matrix<double> B) { return kernels::reference::solve_positive(A, B); }};

}  // namespace

BOOST_AUTO_TEST_SUITE(cholesky)

// [4 2; 2 3] (1, -1)^T = (2, -1)^T, with a second right-hand side twice as large; reads the lower triangle only.
BOOST_AUTO_TEST_CASE(by_hand) {
  for (const Solver solve : solvers) {
    std::vector<double> A{4, 99, 2, 3}, B{2, 4, -1, -2};
    BOOST_TEST(solve(Matrix(A.data(), 2, 2), Matrix(B.data(), 2, 2)));
    const double expected[] = {1, 2, -1, -2};
    for (std::size_t i = 0; i < 4; ++i) BOOST_TEST(std::abs(B[i] - expected[i]) < 1e-15);
  }
}

// A = M^T M + I, with padded rows. The elements of M have variance 1 / n, so the condition number of A is at most about
// 5, and residuals are rounding errors of sums of n terms.
BOOST_AUTO_TEST_CASE(residuals) {
  for (const Solver solve : solvers)
    for (const Index n : {1, 2, 7, 64, 131}) {
      const Index stride = n + 3, sides = 5;
      const RandomStream random(4);
      std::vector<double> A(n * stride), B(n * sides), M(n * n);
      for (Index i = 0; i < n * n; ++i) M[i] = random.normal(i) / std::sqrt(static_cast<double>(n));
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j) {
          A[i * stride + j] = i == j;
          for (Index l = 0; l < n; ++l) A[i * stride + j] += M[l * n + i] * M[l * n + j];
        }
      for (Index i = 0; i < n * sides; ++i) B[i] = random.derive(1).normal(i);
      std::vector<double> factor = A, X = B;
      BOOST_TEST(solve(Matrix(factor.data(), n, n, stride), Matrix(X.data(), n, sides)));
      double worst = 0;
      for (Index i = 0; i < n; ++i)
        for (Index c = 0; c < sides; ++c) {
          double sum = -B[i * sides + c];
          for (Index j = 0; j < n; ++j) sum += A[i * stride + j] * X[j * sides + c];
          worst = std::max(worst, std::abs(sum));
        }
      BOOST_TEST(worst < 1e-13 * n);
    }
}

BOOST_AUTO_TEST_CASE(not_positive) {
  for (const Solver solve : solvers) {
    std::vector<double> A{1, 2, 2, 4}, B{1, 1};  // singular
    BOOST_TEST(!solve(Matrix(A.data(), 2, 2), Matrix(B.data(), 2, 1)));
    A = {1, 0, 0, -1};
    BOOST_TEST(!solve(Matrix(A.data(), 2, 2), Matrix(B.data(), 2, 1)));
  }
}

BOOST_AUTO_TEST_SUITE_END()
