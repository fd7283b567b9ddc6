// List of a model's tensors.
#include "heed/base/parameters.h"

#include "heed/base/error.h"
#include "support/clocks.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

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

// Seven rows of three: two whole blocks and one row. Rows of a block are orthogonal; their lengths differ.
BOOST_AUTO_TEST_CASE(orthogonal_blocks_of_rows) {
  Tensor<double> x(Shape{7, 3});
  fill_initial(Initial::orthogonal(), RandomStream(1), x.view());
  const auto dot = [&](Index a, Index b) {
    double sum = 0;
    for (Index c = 0; c < 3; ++c) sum += x[3 * a + c] * x[3 * b + c];
    return sum;
  };
  for (Index a = 0; a < 7; ++a)
    for (Index b = 0; b < a; ++b)
      BOOST_TEST((std::abs(dot(a, b)) < 1e-14 * std::sqrt(dot(a, a) * dot(b, b))) == (a / 3 == b / 3));
  // The squared length of a row is that of d normal numbers, with mean d and deviation sqrt(2 d).
  Tensor<double> many(Shape{4000, 5});
  fill_initial(Initial::orthogonal(), RandomStream(2), many.view());
  double squares = 0, first = 0;
  for (Index i = 0; i < many.size(); ++i) squares += many[i] * many[i], first += i % 5 == 0 ? many[i] : 0;
  BOOST_TEST(std::abs(squares / 4000 - 5) < 4 * std::sqrt(10.0 / 4000));
  BOOST_TEST(std::abs(first / 4000) < 4 / std::sqrt(4000.0));
  Tensor<float> in_float(Shape{7, 3});
  fill_initial(Initial::orthogonal(), RandomStream(1), in_float.view());
  for (Index i = 0; i < 21; ++i) BOOST_TEST(in_float[i] == static_cast<float>(x[i]));
}

// Takes a second; a linear search for each name would take minutes.
BOOST_AUTO_TEST_CASE(many_tensors_are_added_in_linear_time) {
  const double seconds = test::cpu_seconds([] {
    ParameterList list;
    for (int i = 0; i < 300'000; ++i) list.add({"blocks." + std::to_string(i), {1}, {}});
    BOOST_TEST(list.find("blocks.299999") == 299'999);
  });
  BOOST_TEST(seconds < 20);
}

BOOST_AUTO_TEST_SUITE_END()
