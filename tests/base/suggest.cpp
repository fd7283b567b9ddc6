// Suggestions for misspelt names.
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

BOOST_AUTO_TEST_SUITE_END()
