// Styles of lines: a mechanism looks the same in every chart, page and notebook.
#include "heed/draw/line_style.h"

#include "heed/attention/mechanism.h"
#include "heed/io/file.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <ostream>

using namespace heed;

namespace heed {
static std::ostream& operator<<(std::ostream& out, const LineStyle& style) {
  return out << style.colour << "," << style.dashes;
}
}  // namespace heed

BOOST_AUTO_TEST_SUITE(draw_line_style)

BOOST_AUTO_TEST_CASE(every_mechanism_has_a_style_of_its_own) {
  std::vector<std::string> names;
  for (const MechanismEntry& entry : mechanisms()) names.push_back(entry.name);
  const std::vector<LineStyle> styles = line_styles(names);
  for (std::size_t i = 0; i < styles.size(); ++i) {
    BOOST_TEST(std::ranges::count(styles, styles[i]) == 1, names[i]);
    BOOST_TEST(line_styles({"other", names[i] + ":x=1", names[i]})[2] == styles[i], names[i]);
  }
}

BOOST_AUTO_TEST_CASE(variants_of_a_mechanism_have_its_colour) {
  const std::vector<LineStyle> styles =
      line_styles({"mnist-sima", "sima", "seven", "sima l2", "simax", "runs/aft/1", "relu"});
  const std::vector<LineStyle> expected{{1, 1}, {1, 0}, {0, 0}, {1, 2}, {4, 0}, {2, 0}, {3, 0}};
  BOOST_TEST(styles == expected, boost::test_tools::per_element());
}

// A colour has six dash patterns.
BOOST_AUTO_TEST_CASE(more_variants_of_a_mechanism_than_dash_patterns_have_different_styles) {
  std::vector<std::string> names{"soft", "sima"};
  for (int i = 0; i < 46; ++i) names.push_back(fmt::format("sima:lr={}", i));
  const std::vector<LineStyle> styles = line_styles(names);
  for (std::size_t i = 0; i < styles.size(); ++i) {
    BOOST_TEST(std::ranges::count(styles, styles[i]) == 1, names[i]);
    if (i >= 1 && i < 7) BOOST_TEST(styles[i].colour == 1U);
  }
}

BOOST_AUTO_TEST_CASE(other_names_have_colours_in_order) {
  const std::vector<LineStyle> styles = line_styles(std::vector<std::string>(50, "a"));
  for (std::size_t i = 0; i < 48; ++i) {
    BOOST_TEST(styles[i].colour == i % 8);
    BOOST_TEST(std::ranges::count(styles.begin(), styles.begin() + 48, styles[i]) == 1);
  }
}

// The page's colours are variables, since they differ in dark mode; notebooks have a copy of the list, since they run
// without the library.
BOOST_AUTO_TEST_CASE(pages_and_notebooks_have_the_same_colours) {
  const auto has = [](const char* file, const std::string& piece) {
    BOOST_TEST(read_file(file).find(piece) != std::string::npos, file << " lacks " << piece);
  };
  std::string list;
  for (std::size_t i = 0; i < line_colours.size(); ++i) {
    const std::string colour = line_colours[i], variable = "--s" + std::to_string(i) + ": " + colour + ";";
    has("src/apps/web/page/colours.css", variable);
    has("src/apps/cli/reporting/page/page.css", variable);
    list += (i > 0 ? ", \"" : "\"") + colour + "\"";
  }
  has("notebooks/lab.py", "COLOURS = (" + list + ")");
}

BOOST_AUTO_TEST_SUITE_END()
