#include "heed/kernels/solvers/softmax_inverse.h"

#include "support/compare.h"

using namespace heed;
using kernels::SoftmaxInverse;

namespace {

template <class T>
std::vector<T> inverse(const SoftmaxInverse& s, const std::vector<T>& A) {
  const LaidOut<kernels::SoftmaxInverseScratch, T> scratch(s);
  std::vector<T> Z(A.size());
  kernels::softmax_inverse(s, Matrix(A.data(), s.m, s.m), *scratch, Matrix(Z.data(), s.m, s.m));
  return Z;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_softmax_inverse)

// A = ((3/4, 1/4), (0, 1)): column sums 3/4 and 5/4, so Z_0 = 4/5 A^T = ((3/5, 0), (1/5, 4/5)).
// A^-1 = ((4/3, -1/3), (0, 1)).
BOOST_AUTO_TEST_CASE(by_hand) {
  const std::vector<double> A{0.75, 0.25, 0, 1};
  const auto require_near = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (std::size_t i = 0; i < got.size(); ++i) BOOST_TEST(std::abs(got[i] - expected[i]) < 1e-14);
  };
  require_near(inverse({2, 0}, A), {0.6, 0, 0.2, 0.8});
  require_near(inverse({2, 8}, A), {4.0 / 3, -1.0 / 3, 0, 1});
}

// For a single number a, Z_0 = 1 / a, and w = a Z_0 = 1 is a fixed point: 1 (13 - (15 - (7 - 1))) / 4 = 1.
BOOST_AUTO_TEST_CASE(a_fixed_point) {
  for (Index iterations = 0; iterations < 4; ++iterations)
    BOOST_TEST(inverse({1, iterations}, std::vector<float>{1})[0] == 1);
}

// The gradient of <R, Z_k> by finite differences, with well separated column sums, along directions that preserve row
// sums, since |A|_inf is treated as constant.
BOOST_AUTO_TEST_CASE(gradient_by_differences) {
  const Index m = 3;
  const std::vector<double> A{0.5, 0.2, 0.3, 0.1, 0.2, 0.7, 0.25, 0.35, 0.4}, R{1, -2, 0.5, 0.3, 1.5, -1, 2, 0.7, -0.4};
  for (const Index iterations : {0, 1, 2, 6}) {
    const SoftmaxInverse s{m, iterations};
    const auto value = [&](const std::vector<double>& a) {
      const std::vector<double> Z = inverse(s, a);
      double sum = 0;
      for (std::size_t i = 0; i < Z.size(); ++i) sum += R[i] * Z[i];
      return sum;
    };
    const LaidOut<kernels::SoftmaxInverseScratch, double> scratch(s);
    std::vector<double> dA(9);
    kernels::softmax_inverse_backward(s, Matrix(A.data(), m, m), Matrix(R.data(), m, m), *scratch,
                                      Matrix(dA.data(), m, m));
    for (std::size_t row = 0; row < 3; ++row)
      for (std::size_t j = 0; j < 2; ++j) {
        const double h = 1e-5;
        std::vector<double> above = A, below = A;
        above[3 * row + j] += h, above[3 * row + 2] -= h, below[3 * row + j] -= h, below[3 * row + 2] += h;
        const double expected = (value(above) - value(below)) / (2 * h), got = dA[3 * row + j] - dA[3 * row + 2];
        BOOST_TEST(std::abs(got - expected) < 1e-7 * std::max(1.0, std::abs(expected)),
                   iterations << " iterations, row " << row << ": got " << got << ", expected " << expected);
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
