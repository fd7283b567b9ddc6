// Residuals of the Newton-Raphson inverse, compared with formulas in the eigenvalues.
#include "heed/analysis/newton_residual.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace heed;
using kernels::NewtonInverse;
using kernels::NewtonStart;

namespace {

/// Returns H D H / 4, with a Hadamard matrix H and eigenvalues d. No element is negative if d[0] >= d[1] + d[2] + d[3].
std::vector<double> with_eigenvalues(const std::array<double, 4>& d) {
  constexpr int hadamard[4][4] = {{1, 1, 1, 1}, {1, -1, 1, -1}, {1, 1, -1, -1}, {1, -1, -1, 1}};
  std::vector<double> A(16);
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j)
      for (int l = 0; l < 4; ++l) A[i * 4 + j] += hadamard[i][l] * d[l] * hadamard[l][j] / 4;
  return A;
}

constexpr std::array<double, 4> eigenvalues{2, 0.5, 0.02, 1e-4};

}  // namespace

BOOST_AUTO_TEST_SUITE(newton_residual)

// All column sums of this matrix equal its largest eigenvalue, 2, so the damped start X_0 = a A has a = 1.8 / 4.
BOOST_AUTO_TEST_CASE(residuals_are_what_the_eigenvalues_say) {
  const auto A = with_eigenvalues(eigenvalues);
  const GramCondition gram = gram_condition(4, A.data());
  BOOST_TEST(std::abs(gram.column_sum - 2) < 1e-14);
  BOOST_TEST(std::abs(gram.condition() - 2e4) < 1e-6);
  const Index iterations = 30;
  const NewtonResidual residual = heed::newton_residual(NewtonInverse{4, iterations, NewtonStart::damped}, A.data());
  BOOST_TEST(residual.relative.size() == 31u);
  for (Index k = 0; k <= iterations; ++k) {
    double relative = 0, identity = 0;
    for (const double l : eigenvalues) {
      const double left = std::pow(std::abs(1 - 1.8 / 4 * l * l), std::ldexp(1.0, static_cast<int>(k)));
      relative = std::max(relative, l / 2 * left);
      identity = std::max(identity, left);
    }
    // Rounding errors in an unconverged direction double in each step, until about step 26: 2^26 eps = 1e-8 for the
    // smallest eigenvalue, whose weight in the relative residual is 1 / 2e4.
    BOOST_TEST(std::abs(residual.relative[k] - relative) < 1e-11, "step " << k);
    BOOST_TEST(std::abs(residual.identity[k] - identity) < 1e-7, "step " << k);
  }
}

// SOFT, Proposition 1, second half: the iterates approach the inverse monotonically. An eigenvalue l of A has the
// iterates (1 - (1 - a l^2)^(2^k)) / l, so the Frobenius norm of the difference is a sum of four squares. Rounding
// errors in an unconverged direction double in each step, for about 14 steps: 2^14 eps / 0.05 = 7e-11.
BOOST_AUTO_TEST_CASE(iterates_approach_the_inverse) {
  constexpr std::array<double, 4> values{2, 0.5, 0.2, 0.05};
  const auto A = with_eigenvalues(values), inverse = with_eigenvalues({1 / 2.0, 1 / 0.5, 1 / 0.2, 1 / 0.05});
  const NewtonInverse iteration{4, 18, NewtonStart::damped};
  std::vector<double> memory(16 * 3);
  const auto at = [&](int i) { return Matrix<double>(memory.data() + 16 * i, 4, 4); };
  MemoryLayout<double> layout(memory.data());
  const kernels::NewtonScratch<double> scratch(iteration, layout);
  double before = HUGE_VAL;
  kernels::newton_inverse<double>(
      iteration, Matrix<const double>(A.data(), 4, 4), scratch, at(2), [&](Index k, Matrix<const double> X) {
        double found = 0, expected = 0;
        for (Index i = 0; i < 16; ++i)
          found +=
              (X.data[i] - inverse[static_cast<std::size_t>(i)]) * (X.data[i] - inverse[static_cast<std::size_t>(i)]);
        for (const double l : values) expected += std::pow(std::pow(1 - 1.8 / 4 * l * l, std::exp2(k)) / l, 2);
        found = std::sqrt(found), expected = std::sqrt(expected);
        BOOST_TEST(std::abs(found - expected) < 1e-9, "step " << k);
        BOOST_TEST((found < before || found < 1e-9), "step " << k);
        before = found;
      });
}

// The bound is the larger of 0.3198 (|A|_1 / l_1) 2^(-k/2) and 0.8^(2^k), whatever the eigenvalues below the largest,
// l_1, are. The matrices are nearly singular: kernel matrices of close points on a line.
BOOST_AUTO_TEST_CASE(the_relative_residual_is_below_its_bound) {
  constexpr Index m = 16, iterations = 25;
  for (const double spread : {0.01, 0.3, 1.0, 3.0}) {
    std::vector<double> A(m * m);
    for (Index i = 0; i < m; ++i)
      for (Index j = 0; j < m; ++j) {
        const double x = RandomStream(4).uniform(i, -spread, spread), y = RandomStream(4).uniform(j, -spread, spread);
        A[i * m + j] = std::exp(-(x - y) * (x - y));
      }
    const GramCondition gram = gram_condition(m, A.data());
    const double ratio = gram.column_sum / gram.largest;
    const NewtonResidual residual = heed::newton_residual(NewtonInverse{m, iterations, NewtonStart::damped}, A.data());
    for (Index k = 1; k <= iterations; ++k)
      BOOST_TEST(residual.relative[k] <=
                 std::max(0.3198 * ratio * std::exp2(-0.5 * static_cast<double>(k)), std::pow(0.8, std::exp2(k))) +
                     1e-12);
    BOOST_TEST(residual.steps_below(1e-3) <= static_cast<Index>(std::ceil(17 + 2 * std::log2(ratio))));
    BOOST_TEST(residual.steps_below(1e-3) > 0);
  }
}

// One landmark: A = 1 is its own inverse, which the undamped start never reaches.
BOOST_AUTO_TEST_CASE(the_undamped_start_stalls_at_one_landmark) {
  const float one = 1;
  const auto residual = [&](NewtonStart start) { return heed::newton_residual(NewtonInverse{1, 20, start}, &one); };
  for (const double r : residual(NewtonStart::plain).relative) BOOST_TEST(r == 1);
  BOOST_TEST(residual(NewtonStart::plain).steps_below(1e-3) == -1);
  BOOST_TEST(residual(NewtonStart::damped).steps_below(1e-3) == 5);  // 0.8^(2^5) = 8e-4
}

BOOST_AUTO_TEST_CASE(steps_count_from_where_the_residual_stays_small) {
  const double inf = std::numeric_limits<double>::infinity();
  BOOST_TEST((NewtonResidual{{0.5, 0.1, 0.5, 0.1, 0.2}, {}}).steps_below(0.3) == 3);
  BOOST_TEST((NewtonResidual{{0.1, 0.1}, {}}).steps_below(0.3) == 0);
  BOOST_TEST((NewtonResidual{{0.5, 0.3, 0.1}, {}}).steps_below(0.3) == 2);
  BOOST_TEST((NewtonResidual{{0.5, 0.1, inf}, {}}).steps_below(0.3) == -1);
}

// The square of |A| = 1e-25 underflows in float, so that X_0 = a A is infinite; in double it does not.
BOOST_AUTO_TEST_CASE(residuals_of_iterates_that_are_not_finite_are_infinite) {
  const float A = 1e-25f;
  const NewtonResidual residual = heed::newton_residual(NewtonInverse{1, 3, NewtonStart::damped}, &A);
  BOOST_TEST(residual.relative == std::vector<double>(4, HUGE_VAL), boost::test_tools::per_element());
  BOOST_TEST(residual.identity == std::vector<double>(4, HUGE_VAL), boost::test_tools::per_element());
  BOOST_TEST(residual.steps_below(1e-3) == -1);
  const double in_double = 1e-25;
  BOOST_TEST(std::abs(heed::newton_residual(NewtonInverse{1, 3, NewtonStart::damped}, &in_double).relative[0] - 0.8) <
             1e-12);
}

// The eigenvalues of this matrix are 1 and 1 -+ sqrt(2) / 2; its columns' sums are 1.5, 2 and 1.5.
BOOST_AUTO_TEST_CASE(norms_of_a_matrix_with_uneven_columns) {
  const std::vector<double> A{1, 0.5, 0, 0.5, 1, 0.5, 0, 0.5, 1};
  const GramCondition gram = gram_condition(3, A.data());
  BOOST_TEST(gram.column_sum == 2);
  BOOST_TEST(std::abs(gram.largest - (1 + std::sqrt(0.5))) < 1e-14);
  BOOST_TEST(std::abs(gram.smallest - (1 - std::sqrt(0.5))) < 1e-14);
  BOOST_TEST(std::abs(gram.condition() - (3 + std::sqrt(8))) < 1e-12);
}

BOOST_AUTO_TEST_SUITE_END()
