// Printing of arbitrary text.
#include "heed/base/printable.h"
#include "heed/base/suggest.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(base_printable)

BOOST_AUTO_TEST_CASE(control_characters_are_escaped) {
  BOOST_TEST(printable("") == "");
  BOOST_TEST(printable("a\033[31m\tb\x7f\n") == "a\\x1b[31m\\x09b\\x7f\\x0a");
  BOOST_TEST(printable("\xc2\x9b\x33m and \xc2") == "\\xc2\\x9b3m and \xc2");
  BOOST_TEST(in_quotes("a\033\xc2\x80") == "'a\\x1b\\xc2\\x80'");
}

// A no-break space begins with the same byte as some control characters; "é" and "€" have different bytes.
BOOST_AUTO_TEST_CASE(other_letters_are_left) {
  for (const char* text : {"plain", "\xc2\xa0", "caf\xc3\xa9 3 \xe2\x82\xac", "\xf0\x9f\x98\x80"})
    BOOST_TEST(printable(text) == text);
}

BOOST_AUTO_TEST_SUITE_END()
