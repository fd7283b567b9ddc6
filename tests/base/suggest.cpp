// Suggestions for misspelt names; lists and counts in messages.
#include "heed/base/suggest.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

BOOST_AUTO_TEST_SUITE(suggest)

BOOST_AUTO_TEST_CASE(nearest_name) {
  BOOST_TEST(nearest("softmx", {"sima", "softmax", "soft"}) == "softmax");
  BOOST_TEST(nearest("heat", {"head", "heads", "beat"}) == "head");  // the first of two with one edit
  BOOST_TEST(nearest("heat", {"beat", "head"}) == "beat");
  BOOST_TEST(nearest("WIDTH", {"depth", "width"}) == "width");
  BOOST_TEST(nearest("ab", {"cd"}) == "");  // no letter agrees
  BOOST_TEST(nearest("mechanism", {"meal"}) == "");
  BOOST_TEST(nearest("", {"a"}) == "");
}

// "ehad" differs from "head" by one edit, a swap of neighbours, and from "bead" by two. Three of nine letters may
// differ, and two of four.
BOOST_AUTO_TEST_CASE(distances_of_names) {
  BOOST_TEST(nearest("ehad", {"bead", "head"}) == "head");
  BOOST_TEST(nearest("temperxyz", {"temperate"}) == "temperate");
  BOOST_TEST(nearest("tempewxyz", {"temperate"}) == "");
  BOOST_TEST(nearest("abcd", {"abxy"}) == "abxy");
  BOOST_TEST(nearest("abcd", {"axyz"}) == "");
  // A name differs from its initials by one edit, and from a substring of three or more letters by at most two; either
  // may be the misspelt name.
  BOOST_TEST(nearest("ds", {"data-sets"}) == "data-sets");
  BOOST_TEST(nearest("data_sets", {"ds"}) == "ds");
  BOOST_TEST(nearest("d", {"data"}) == "");
  BOOST_TEST(nearest("decay", {"weight_decay"}) == "weight_decay");
  BOOST_TEST(nearest("weight_decay", {"decay"}) == "decay");
  BOOST_TEST(nearest("ca", {"weight_decay"}) == "");
  BOOST_TEST(nearest("decay", {"weight_decay", "decoy"}) == "decoy");
  BOOST_TEST(nearest(std::string(80, 'c'), {std::string(79, 'c') + "d"}) == std::string(79, 'c') + "d");
  BOOST_TEST(nearest(std::string(81, 'c'), {std::string(81, 'c')}) == "");
}

BOOST_AUTO_TEST_CASE(ends_of_messages) {
  BOOST_TEST(suggestion("softmx", {"sima", "softmax"}) == "; did you mean 'softmax'?");
  BOOST_TEST(suggestion("q", {"alpha", "beta"}) == "; expected one of alpha, beta");
  BOOST_TEST(suggestion("q", {}) == "");
}

BOOST_AUTO_TEST_CASE(lists_and_counts) {
  BOOST_TEST(quoted_list({}) == "");
  BOOST_TEST(quoted_list({"a", "b", "c", "d"}) == "'a', 'b', 'c', 'd'");
  BOOST_TEST(quoted_list({"a", "b", "c", "d", "e", "f"}) == "'a', 'b', 'c', 'd' and 2 more");
  BOOST_TEST(first_names({"a", "b", "c"}, 3) == "a, b, c");
  BOOST_TEST(first_names({"a", "b", "c"}, 2) == "a, b, ...");
  BOOST_TEST(first_names({}, 2) == "");
  BOOST_TEST(counted(1, "step") == "1 step");
  for (const auto& [count, text] : {std::pair(0, "0 steps"), {2, "2 steps"}})
    BOOST_TEST(counted(count, "step") == text);
  BOOST_TEST(in_quotes(std::string(80, 'x')) == "'" + std::string(80, 'x') + "'");
  BOOST_TEST(in_quotes(std::string(81, 'x')) == "'" + std::string(80, 'x') + "...'");
  // Characters of 2 and 3 bytes are not cut.
  std::string two = "x", three = "xx";
  for (int i = 0; i < 40; ++i) two += "\u044b", three += "\u65e5";
  BOOST_TEST(in_quotes(two) == "'" + two.substr(0, 79) + "...'");
  BOOST_TEST(in_quotes(three) == "'" + three.substr(0, 80) + "...'");
  BOOST_TEST(beginning(three, 4) == "xx");
  BOOST_TEST(beginning(three, 5) == three.substr(0, 5));
  BOOST_TEST(beginning(three, 1000) == three);
  BOOST_TEST(in_quotes(three.substr(1)) == "'" + three.substr(1, 79) + "...'");
}

BOOST_AUTO_TEST_SUITE_END()
