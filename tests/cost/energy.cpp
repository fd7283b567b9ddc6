// The built-in table of energies.
#include "heed/cost/energy.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(energy)

BOOST_AUTO_TEST_CASE(the_built_in_table) {
  const Counts counts{.mul = 1'000, .add = 2'000, .exp = 5, .cmp = 7};
  BOOST_TEST(energy_pj(default_energy_table(), counts) == 3.7 * 1'000 + 0.9 * 2'000,
             boost::test_tools::tolerance(1e-15));
}

BOOST_AUTO_TEST_SUITE_END()
