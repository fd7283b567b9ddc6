// Warnings and the progress of reading, as commands show them.
#include "heed/base/warnings.h"

#include <boost/test/unit_test.hpp>
#include <fmt/format.h>

using namespace heed;
using Lines = std::vector<std::string>;

BOOST_AUTO_TEST_SUITE(base_warnings)

// Lines are returned in the order of addition; a line that has been returned once is not returned by later calls.
BOOST_AUTO_TEST_CASE(each_line_is_added_once) {
  take_warnings();
  for (const char* line : {"test: one", "test: two", "test: one"}) warn(line);
  BOOST_TEST(take_warnings() == (Lines{"test: one", "test: two"}), boost::test_tools::per_element());
  BOOST_TEST(take_warnings().empty());
  for (const char* line : {"test: two", "test: three"}) warn(line);
  BOOST_TEST(take_warnings() == Lines{"test: three"}, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(each_step_of_the_work_is_reported) {
  Lines shown;
  show_progress(
      [&](const char* what, long done, long all) { shown.push_back(fmt::format("{} {}/{}", what, done, all)); });
  const ReadingProgress files("files", 3), images("images", 1);
  files.advance(), files.advance(), images.advance(), files.advance();
  show_progress({});
  images.advance();
  BOOST_TEST(shown == (Lines{"files 1/3", "files 2/3", "images 1/1", "files 3/3"}), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_SUITE_END()
