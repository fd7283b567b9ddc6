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

// Seven rows of three: two whole blocks and one row. Rows of a block are orthogonal, rows of different blocks are not.
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
  // The squared length of a row is the sum of squares of d normal numbers, with mean d and deviation sqrt(2 d).
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

// Adding the tensors takes a second; a linear search for each name would take minutes.
BOOST_AUTO_TEST_CASE(many_tensors_are_added_in_linear_time) {
  const double seconds = test::cpu_seconds([] {
    ParameterList list;
    for (int i = 0; i < 300'000; ++i) list.add({"blocks." + std::to_string(i), {1}, {}});
    BOOST_TEST(list.find("blocks.299999") == 299'999);
  });
  BOOST_TEST(seconds < 20);
}

// Weights in order, then prepared tensors, then buffers, each rounded up to 16 elements.
BOOST_AUTO_TEST_CASE(weights_prepared_tensors_and_buffers_lie_in_this_order) {
  ParameterList list;
  const ParameterId buffer = list.add({.name = "buffer", .shape = {2}, .trainable = false}),
                    a = list.add({.name = "a", .shape = {3}}),
                    prepared = list.add({.name = "p", .shape = {5}, .trainable = false, .prepared = true}),
                    b = list.add({.name = "b", .shape = {4, 5}});
  Parameters<double> parameters(list);
  BOOST_TEST(parameters.offset(a) == 0);
  BOOST_TEST(parameters.offset(b) == 16);
  BOOST_TEST(parameters.trainable_size() == 16 + 32);
  BOOST_TEST(parameters.offset(prepared) == 48);
  BOOST_TEST(parameters.gradient_size() == 64);
  BOOST_TEST(parameters.offset(buffer) == 64);
  BOOST_TEST(parameters.size() == 80);
  BOOST_TEST(list.trainable_elements() == 3 + 20);
  // complete() zeroes the gradients that were not written, for weights and prepared tensors.
  Gradients<double> gradients(parameters);
  BOOST_TEST(gradients.size() == 64);
  std::fill_n(gradients.data(), 64, 7.0);
  gradients.reset();
  gradients.fresh(a) = false;
  gradients.complete();
  BOOST_TEST(gradients[a][2] == 7);
  BOOST_TEST(gradients[prepared][4] == 0);
  BOOST_TEST((gradients[b][0] == 0 && gradients[b][19] == 0));
  BOOST_TEST(!gradients.fresh(prepared));
}

BOOST_AUTO_TEST_CASE(groups_of_tensors_are_marked) {
  ParameterList list;
  for (const char* name : {"body", "head.0", "head.1"}) list.add({.name = name, .shape = {6, 2}});
  list.for_training_only(1);
  for (ParameterId id = 0; id < 3; ++id) BOOST_TEST(list[id].training_only == (id >= 1));
  list.divide("head.0", {{"q", 2}, {"v", 4}});
  BOOST_TEST((list[0].parts.empty() && list[2].parts.empty()));
  BOOST_TEST_REQUIRE(list[1].parts.size() == 2u);
  BOOST_TEST((list[1].parts[1].name == "v" && list[1].parts[1].rows == 4));
}

BOOST_AUTO_TEST_SUITE_END()
