// Ties. tests/kernels/fast_kernels.cpp tests the rest.
#include "heed/kernels/rows/row_hash.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_row_hash)

// Ties go to the first of U_1, ..., U_n, -U_1, ..., -U_n.
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
