// Suspicious words in submissions: words with which code distinguishes number types or reaches outside its process. The
// test includes the source file.
#include "src/apps/cli/course/likeness.cpp"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(cli_likeness)

// C++ separates digits by an apostrophe, which also begins a character literal: the rest of the line must not be taken
// for one.
BOOST_AUTO_TEST_CASE(separated_digits_are_a_number) {
  const auto words = [](const std::string& text, LabKind kind) { return cli::suspicious_words(text, "", kind); };
  BOOST_TEST(words("const int n = 1'000; fork();\n", LabKind::mechanism) == "fork");
  BOOST_TEST(words("const int n = 0x1'F; fork(); c = '0';\n", LabKind::mechanism) == "fork");
  BOOST_TEST(words("const char c = 'f'; const char* s = \"fork()\";\n", LabKind::mechanism) == "");
  BOOST_TEST(words("x = 1 if 'os' else 2\n", LabKind::python) == "");
}

BOOST_AUTO_TEST_SUITE_END()
