#include "heed/kernels/row_hash.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_row_hash)

BOOST_AUTO_TEST_CASE(the_largest_of_all_and_their_opposites) {
  for (const Index n : lengths) {
    const Index rows = 23, stride = n + 3;
    const auto U = normal_floats(rows * stride, 1);
    std::vector<double> exact(U);
    Guarded fast(U, 1);
    std::vector<double> expected(rows);
    std::vector<float> got(rows);
    kernels::reference::hash_rows<double>(Matrix(exact.data(), rows, n, stride), expected.data());
    kernels::hash_rows(Matrix<const float>(fast.data(), rows, n, stride), got.data());
    for (Index r = 0; r < rows; ++r) {
      const auto i = static_cast<std::size_t>(r);
      const auto bucket = static_cast<Index>(expected[i]);
      BOOST_TEST(static_cast<Index>(got[i]) == bucket);
      const double sign = bucket < n ? 1 : -1,
                   largest = sign * exact[static_cast<std::size_t>(r * stride + bucket % n)];
      for (Index j = 0; j < n; ++j) BOOST_TEST(std::abs(exact[static_cast<std::size_t>(r * stride + j)]) <= largest);
    }
  }
}

// Of equal ones the first: among the numbers before their opposites.
BOOST_AUTO_TEST_CASE(ties) {
  const auto bucket = [](std::vector<float> row) {
    float fast = -1, plain = -1;
    const Matrix<const float> U(row.data(), 1, static_cast<Index>(row.size()));
    kernels::hash_rows(U, &fast);
    kernels::reference::hash_rows<float>(U, &plain);
    BOOST_TEST(fast == plain);
    return fast;
  };
  BOOST_TEST(bucket({0, 0, 0}) == 0);
  BOOST_TEST(bucket({1, 2, 2}) == 1);
  BOOST_TEST(bucket({-2, 1, 2}) == 2);
  BOOST_TEST(bucket({1, -2, -2}) == 4);
  std::vector<float> far(40, 0.5F);
  far[37] = far[39] = -1;
  BOOST_TEST(bucket(far) == 77);
}

BOOST_AUTO_TEST_SUITE_END()
