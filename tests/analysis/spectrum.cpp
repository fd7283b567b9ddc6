// Spectra of attention maps.
#include "heed/analysis/spectrum.h"

#include "heed/base/error.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>

using namespace heed;

namespace {

std::vector<double> diagonal(const std::vector<double>& values) {
  const std::size_t n = values.size();
  std::vector<double> matrix(n * n);
  for (std::size_t i = 0; i < n; ++i) matrix[i * n + i] = values[i];
  return matrix;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(spectrum)

BOOST_AUTO_TEST_CASE(of_a_diagonal_matrix) {
  const Spectrum s = spectrum_of(diagonal({-1.5, 8, 0.25, 0.25}), 4);
  const double values[] = {8, 1.5, 0.25, 0.25}, cumulative[] = {0.8, 0.95, 0.975, 1};
  for (std::size_t i = 0; i < 4; ++i) {
    BOOST_TEST(std::abs(s.values[i] - values[i]) < 1e-14);
    BOOST_TEST(std::abs(s.cumulative[i] - cumulative[i]) < 1e-14);
  }
  BOOST_TEST(s.rank == 2);
}

// The identity has 50 equal singular values, 45 of which have 0.9 of the sum. 1 1^T / N, equal attention to all, has
// rank 1; with the identity added, it has N - 1 values of 1 and one of 2: 2 + (r - 1) >= 0.9 (N + 1) from r = 45 on.
BOOST_AUTO_TEST_CASE(the_identity_raises_the_equivalent_rank) {
  constexpr std::size_t n = 50;
  const std::vector<double> identity = diagonal(std::vector<double>(n, 1.0));
  std::vector<double> even(n * n, 1.0 / n);
  BOOST_TEST(spectrum_of(identity, n).rank == 45);
  BOOST_TEST(spectrum_of(even, n).rank == 1);
  for (std::size_t i = 0; i < n; ++i) even[i * n + i] += 1;
  BOOST_TEST(spectrum_of(even, n).rank == 45);
}

// There are min(rows, columns) singular values: here the lengths 5 and 1 of two orthogonal rows or columns.
BOOST_AUTO_TEST_CASE(of_a_matrix_that_is_not_square) {
  const std::vector<double> wide{3, 0, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0}, tall{3, 0, 4, 0, 0, 0, 0, 1, 0, 0, 0, 0};
  for (const Spectrum& s : {spectrum_of(wide, 2), spectrum_of(tall, 6)}) {
    BOOST_REQUIRE(s.values.size() == 2u);
    BOOST_TEST(std::abs(s.values[0] - 5) < 1e-14);
    BOOST_TEST(std::abs(s.values[1] - 1) < 1e-14);
    BOOST_TEST(s.rank == 2);
  }
}

BOOST_AUTO_TEST_CASE(of_nothing_and_of_what_is_not_finite) {
  const Spectrum s = spectrum_of(std::vector<double>(9), 3);
  BOOST_TEST(s.rank == 0);
  BOOST_TEST(s.cumulative == (std::vector<double>{1, 1, 1}), boost::test_tools::per_element());
  const double nan = std::numeric_limits<double>::quiet_NaN();
  BOOST_TEST(error_of([&] { spectrum_of({1, 0, nan, 1}, 2); }).starts_with("an attention map contains inf or NaN"));
}

BOOST_AUTO_TEST_SUITE_END()
