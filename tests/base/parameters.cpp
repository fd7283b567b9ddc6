// The list of a model's tensors.
#include "heed/base/parameters.h"

#include "heed/base/error.h"

#include <boost/test/unit_test.hpp>

#include <chrono>

using namespace heed;

BOOST_AUTO_TEST_SUITE(parameter_list)

BOOST_AUTO_TEST_CASE(tensors_are_found_by_name) {
  ParameterList list;
  const ParameterId a = list.add({"a", {2}, {}}), b = list.add({"b", {3}, {}});
  BOOST_TEST(list.find("a") == a);
  BOOST_TEST(list.find("b") == b);
  BOOST_TEST(list.find("c") == -1);
  BOOST_TEST(ParameterList(list).find("b") == b);
  BOOST_CHECK_THROW(list.add({"a", {4}, {}}), Error);
  BOOST_TEST(list.size() == 2);
  BOOST_TEST(list.find("a") == a);
}

// Looking through all names for each would take ten seconds.
BOOST_AUTO_TEST_CASE(many_tensors_are_added_in_linear_time) {
  const auto start = std::chrono::steady_clock::now();
  ParameterList list;
  for (int i = 0; i < 100'000; ++i) list.add({"blocks." + std::to_string(i), {1}, {}});
  BOOST_TEST(list.find("blocks.99999") == 99'999);
  BOOST_TEST(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < 3);
}

BOOST_AUTO_TEST_SUITE_END()
