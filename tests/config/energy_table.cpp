// Energy tables in files.
#include "heed/config/energy_table.h"

#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

const std::string good = "name = \"t\"\n[operations]\nmul = { pj = 2, source = \"s\" }\n";

/// Returns the error for a table with this text, without the path; "accepted" if there is none.
std::string refusal(const std::string& text) {
  const TemporaryDirectory directory;
  const std::string path = directory / "t.toml";
  write_file(path, text);
  try {
    load_energy_table(path);
  } catch (const Error& error) {
    BOOST_TEST(std::string(error.what()).starts_with(path));
    return std::string(error.what()).substr(path.size());
  }
  return "accepted";
}

}  // namespace

BOOST_AUTO_TEST_SUITE(energy_table)

BOOST_AUTO_TEST_CASE(the_built_in_table_is_a_file_too) {
  BOOST_TEST((load_energy_table("models/energy/float32-45nm.toml") == default_energy_table()));
}

BOOST_AUTO_TEST_CASE(tables_of_other_numbers) {
  const Counts one{.mul = 1, .add = 1};
  const auto of = [&](const std::string& name) { return load_energy_table("models/energy/" + name + "-45nm.toml"); };
  BOOST_TEST(energy_pj(of("float16"), one) == 1.5, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(energy_pj(of("int32"), one) == 3.2, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(energy_pj(of("int8"), one) == 0.23, boost::test_tools::tolerance(1e-15));
  BOOST_TEST(of("int8").number_bytes == 1);
}

// Each operation and each kind of memory has its own energy and source.
BOOST_AUTO_TEST_CASE(figures_have_energies_and_sources_of_their_own) {
  const TemporaryDirectory directory;
  const std::string path = directory / "t.toml";
  write_file(path, good + "add = { source = \"u\", pj = 0.5 }\n" +
                       "[memory]\nfar = { pj = 640, source = \"v\" }\nnear = { pj = 5, source = \"w\" }\n");
  const EnergyTable table = load_energy_table(path);
  BOOST_TEST((table.operations == std::vector<EnergyFigure>{{"add", 0.5, "u"}, {"mul", 2, "s"}}));
  BOOST_TEST((table.memory == std::vector<EnergyFigure>{{"far", 640, "v"}, {"near", 5, "w"}}));
  BOOST_TEST(energy_pj(table, Counts{.mul = 3, .add = 4}) == 3 * 2 + 4 * 0.5);
}

BOOST_AUTO_TEST_CASE(bad_tables) {
  BOOST_TEST(refusal(good) == "accepted");
  BOOST_TEST(refusal("name = \"t\"\n[operation]\n") == ":2: unknown key 'operation'; did you mean 'operations'?");
  BOOST_TEST(refusal(good + "mull = { pj = 1, source = \"s\" }\n") ==
             ":4: unknown operation 'mull'; did you mean 'mul'?");
  BOOST_TEST(refusal(good + "add = 1\n") == ":4: 'add': expected { pj = NUMBER, source = \"...\" }, found an integer");
  BOOST_TEST(refusal(good + "add = { pj = 1 }\n") == ":4: 'add': source is missing; expected one for every figure");
  BOOST_TEST(refusal(good + "add = { source = \"s\" }\n") ==
             ":4: 'add': pj is missing; expected a number of at least 0");
  BOOST_TEST(refusal(good + "add = { pj = -1, source = \"s\" }\n") ==
             ":4: 'add': pj is -1; expected a number of at least 0");
  BOOST_TEST(refusal(good + "add = { pj = inf, source = \"s\" }\n") ==
             ":4: 'add': pj is inf; expected a number of at least 0");
  BOOST_TEST(refusal("number_bytes = 0\n" + good).starts_with(":1: 'number_bytes'"));
  BOOST_TEST(refusal("number_bytes = 17\n" + good) == ":1: 'number_bytes': expected an integer from 1 to 16");
  for (const char* bytes : {"1", "16"})
    BOOST_TEST(refusal(fmt::format("number_bytes = {}\n{}", bytes, good)) == "accepted");
  BOOST_TEST(refusal(good + "add = { pj = 0, source = \"s\" }\n") == "accepted");
  BOOST_TEST(refusal(good + "add = { pj = 1, source = \"s\", unit = \"J\" }\n") ==
             ":4: 'add': unknown key or bad value 'unit'; expected pj, a number, and source, a string");
  BOOST_TEST(refusal("\nname = 3\n") == ":2: 'name': expected a string, found an integer");
  BOOST_TEST(refusal("name = \"t\"\noperations = 3\n") == ":2: 'operations': expected a table, found an integer");
  BOOST_TEST(refusal(good.substr(11)) == ": 'name' is missing");
  BOOST_TEST(refusal("name = \"t\"\n") == ": [operations] has no energies");
  BOOST_TEST(refusal(good + "[").starts_with(":4: not valid TOML"));
  BOOST_CHECK_THROW(load_energy_table("none.toml"), Error);
}

BOOST_AUTO_TEST_SUITE_END()
