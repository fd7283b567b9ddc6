// Singular values: known ones, and LAPACK compared with the reference kernel.
#include "heed/kernels/solvers/singular_values.h"
#include "heed/base/random.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;

namespace {

std::vector<double> random_matrix(Index rows, Index columns) {
  std::vector<double> a(rows * columns);
  for (Index i = 0; i < rows * columns; ++i) a[i] = RandomStream(3).normal(i);
  return a;
}

using Method = std::vector<double> (*)(Index, std::vector<double>);  // arguments: number of rows, elements

/// Returns the singular values as computed for double, by LAPACK if available.
std::vector<double> usual(Index rows, std::vector<double> a) {
  const Index columns = static_cast<Index>(a.size()) / rows;
  std::vector<double> values(std::min(rows, columns));
  kernels::singular_values(Matrix(a.data(), rows, columns), values.data());
  return values;
}

std::vector<double> reference(Index rows, std::vector<double> a) {
  const Index columns = static_cast<Index>(a.size()) / rows;
  std::vector<double> values(std::min(rows, columns));
  kernels::reference::singular_values(Matrix(a.data(), rows, columns), values.data());
  return values;
}

constexpr Method methods[] = {usual, reference};

}  // namespace

BOOST_AUTO_TEST_SUITE(singular_values)

BOOST_AUTO_TEST_CASE(known_values) {
  for (const Method values : methods) {
    BOOST_TEST(values(1, {-3}) == (std::vector<double>{3}), boost::test_tools::per_element());
    BOOST_TEST(values(3, std::vector<double>(9)) == (std::vector<double>{0, 0, 0}), boost::test_tools::per_element());
    // [3 0; 4 5] has A^T A = [25 20; 20 25], with the eigenvalues 45 and 5.
    const auto two = values(2, {3, 0, 4, 5});
    BOOST_TEST(std::abs(two[0] - std::sqrt(45)) < 1e-14);
    BOOST_TEST(std::abs(two[1] - std::sqrt(5)) < 1e-14);
    // 1 1^T has the values n, 0, 0, ...
    const Index n = 50;
    const auto ones = values(n, std::vector<double>(n * n, 1.0));
    BOOST_TEST(std::abs(ones[0] - n) < 1e-12);
    for (Index i = 1; i < n; ++i) BOOST_TEST(ones[i] < 1e-12);
    // A permutation with signs and scales.
    const auto permuted = values(4, {0, 0, 1, 0, 0, 0, 0, -1e-9, 2, 0, 0, 0, 0, 4, 0, 0});
    const double expected[] = {4, 2, 1, 1e-9};
    for (Index i = 0; i < 4; ++i) BOOST_TEST(std::abs(permuted[i] - expected[i]) < 1e-14);
  }
}

// |A|_F^2 = sum s^2; both methods agree up to rounding, n eps s_1.
BOOST_AUTO_TEST_CASE(both_ways_agree) {
  for (const Index n : {2, 5, 16, 33, 50}) {
    auto a = random_matrix(n, n);
    std::copy(a.begin(), a.begin() + n, a.end() - n);  // two equal rows, so one value is 0
    const auto x = usual(n, a), y = reference(n, a);
    double squares = 0, sum = 0;
    for (const double element : a) squares += element * element;
    for (const double value : y) sum += value * value;
    BOOST_TEST(std::abs(sum - squares) < 1e-13 * squares);
    BOOST_TEST(y.back() < 1e-14 * y[0]);
    BOOST_TEST(std::is_sorted(x.rbegin(), x.rend()));
    for (Index i = 0; i < n; ++i)
      BOOST_TEST(std::abs(x[i] - y[i]) < 1e-14 * static_cast<double>(n) * y[0], n << ", value " << i);
  }
}

// A matrix and its transpose have the same values, the square roots of the eigenvalues of the smaller of
// A A^T and A^T A.
BOOST_AUTO_TEST_CASE(matrices_that_are_not_square) {
  for (const auto& [rows, columns] : {std::pair<Index, Index>{1, 7}, {5, 3}, {33, 50}, {49, 16}}) {
    const auto a = random_matrix(rows, columns);
    std::vector<double> transposed;
    for (Index c = 0; c < columns; ++c)
      for (Index r = 0; r < rows; ++r) transposed.push_back(a[r * columns + c]);
    const auto expected = reference(rows, a);
    double squares = 0, sum = 0;
    for (const double element : a) squares += element * element;
    for (const double value : expected) sum += value * value;
    BOOST_TEST(std::abs(sum - squares) < 1e-13 * squares);
    for (const auto& other : {reference(columns, transposed), usual(rows, a), usual(columns, transposed)})
      for (std::size_t i = 0; i < expected.size(); ++i)
        BOOST_TEST(std::abs(other[i] - expected[i]) <
                   1e-14 * static_cast<double>(std::max(rows, columns)) * expected[0]);
  }
}

BOOST_AUTO_TEST_SUITE_END()
