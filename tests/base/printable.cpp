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

// A no-break space begins with the same byte, 0xC2, as some control characters; "é" and "€" begin with other bytes.
BOOST_AUTO_TEST_CASE(other_letters_are_left) {
  for (const char* text : {"plain", "\xc2\xa0", "caf\xc3\xa9 3 \xe2\x82\xac", "\xf0\x9f\x98\x80"})
    BOOST_TEST(printable(text) == text);
}

BOOST_AUTO_TEST_CASE(words_for_the_shell) {
  BOOST_TEST(shell_word("runs/a-1,b:c=d@e+f_g.h") == "runs/a-1,b:c=d@e+f_g.h");
  BOOST_TEST(shell_word("") == "''");
  BOOST_TEST(shell_word("a my run") == "'a my run'");
  BOOST_TEST(shell_word("it's $x") == "'it'\\''s $x'");
  BOOST_TEST(shell_word("a\n'\\") == "$'a\\x0a\\'\\\\'");
}

BOOST_AUTO_TEST_SUITE_END()
