// Positions of maxima. tests/kernels/fast_kernels.cpp tests the rest.
#include "heed/kernels/rows/favor.h"

#include "support/compare.h"

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(kernels_favor)

// The first of equal maxima is selected, whether in the first vector, across vectors or in the last.
BOOST_AUTO_TEST_CASE(the_first_of_equal_maxima) {
  for (const Index m : {3, 40})
    for (Index first = 0; first < m - 1; ++first) {
      Guarded U(m, 1, -2), maximum(1, 0), place(1, 0);
      U.data()[first] = U.data()[m - 1] = 1.5F;
      const kernels::RowMaxima<float> maxima{maximum.data(), place.data()};
      kernels::favor_maxima(0.25, Matrix<const float>(U.data(), 1, m), maxima);
      BOOST_TEST(place[0] == static_cast<float>(first));
      BOOST_TEST(maximum[0] == 0.375F);
    }
}

BOOST_AUTO_TEST_SUITE_END()
