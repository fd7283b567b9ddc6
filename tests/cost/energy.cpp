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
  for (const auto& [of, source] :
       {std::pair("add", "FAdd 32 bit"), {"mul", "FMult 32 bit"}, {"cache", "1 MB"}, {"dram", "DRAM"}}) {
    const std::vector<EnergyFigure>& figures =
        of == std::string("add") || of == std::string("mul") ? table.operations : table.memory;
    const auto figure = std::ranges::find(figures, of, &EnergyFigure::of);
    BOOST_REQUIRE((figure != figures.end()));
    BOOST_TEST(figure->source.find(source) != std::string::npos, of);
  }
}

BOOST_AUTO_TEST_CASE(names_of_the_kinds_of_operations) {
  const Counts one_to_nine{.mul = 1, .add = 2, .div = 3, .sqrt = 4, .exp = 5, .log = 6, .erf = 7, .other = 8, .cmp = 9};
  Index next = 1;
  std::string names;
  for (const CountKind& kind : count_kinds) {
    BOOST_TEST((one_to_nine.*kind.member) == next++, kind.name);
    names += std::string(kind.name) + " ";
  }
  BOOST_TEST(names == "mul add div sqrt exp log erf other cmp ");
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
