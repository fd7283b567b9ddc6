// The built-in table of energies.
#include "heed/cost/energy.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>

using namespace heed;

BOOST_AUTO_TEST_SUITE(energy)

BOOST_AUTO_TEST_CASE(the_built_in_table) {
  const Counts counts{.mul = 1'000, .add = 2'000, .exp = 5, .cmp = 7};
  const EnergyTable& table = default_energy_table();
  BOOST_TEST(energy_pj(table, counts) == 3.7 * 1'000 + 0.9 * 2'000, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(table.name == "float32, 45 nm");
  BOOST_TEST(table.number_bytes == 4);
  // Published per 64 bits: 100 pJ for a cache of 1 MB, 1300 pJ for DRAM; the table is per byte.
  BOOST_TEST(table.memory.size() == 2u);
  for (const auto& [of, per_64_bits] : {std::pair("cache", 100.0), {"dram", 1300.0}}) {
    const auto figure = std::ranges::find(table.memory, of, &EnergyFigure::of);
    BOOST_REQUIRE((figure != table.memory.end()));
    BOOST_TEST(figure->pj * 8 == per_64_bits);
  }
}

// Each kind of operation has a separate energy.
BOOST_AUTO_TEST_CASE(every_kind_that_a_table_lists_is_paid_for) {
  Counts counts;
  EnergyTable all;
  double expected = 0, price = 0.5;
  for (const CountKind& kind : count_kinds) {
    counts.*kind.member = 10 + static_cast<Index>(all.operations.size());
    price += 1;
    all.operations.push_back({kind.name, price, "test"});
    expected += price * static_cast<double>(counts.*kind.member);
    EnergyTable one;
    one.operations = {all.operations.back()};
    BOOST_TEST(energy_pj(one, counts) == price * static_cast<double>(counts.*kind.member), kind.name);
  }
  BOOST_TEST(all.operations.size() == 9u);
  BOOST_TEST(energy_pj(all, counts) == expected);
  const Counts divisions{.div = 3};
  EnergyTable dear;
  dear.operations = {{"mul", 3.7, ""}, {"div", 20, ""}};
  BOOST_TEST(energy_pj(dear, divisions) == 60);
}

BOOST_AUTO_TEST_SUITE_END()
