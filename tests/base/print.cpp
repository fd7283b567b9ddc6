// Tensors as text.
#include "heed/base/print.h"

#include "heed/cost/counted.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <numeric>
#include <sstream>

using namespace heed;

namespace {

template <class X>
std::string printed(const X& x) {
  std::ostringstream out;
  out << x;
  return out.str();
}

/// Returns 0, 1, 2, ...
Tensor<int> counting(Shape shape) {
  Tensor<int> tensor(shape);
  std::iota(tensor.begin(), tensor.end(), 0);
  return tensor;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(print)

BOOST_AUTO_TEST_CASE(a_matrix_is_rounded_and_aligned) {
  const Tensor<float> x(Shape{2, 3}, {0.5f, -1.25f, 1000, 1 / 3.0f, 1e-9f, 123456});
  BOOST_TEST(printed(x) ==
             "[[      0.5,     -1.25,      1000],\n"
             " [   0.3333,     1e-09, 1.235e+05]]  shape [2, 3]");
  BOOST_TEST(printed(x.view()) == printed(x));
  BOOST_TEST(printed(x.view().part(1, 1)) == "[[   0.3333,     1e-09, 1.235e+05]]  shape [1, 3]");
}

BOOST_AUTO_TEST_CASE(scalars_vectors_and_nothing) {
  BOOST_TEST(printed(Tensor<double>(Shape{}, {2.5})) == "2.5  shape []");
  BOOST_TEST(printed(Tensor<double>(Shape{2}, {1.0 * NAN, -1.0 * INFINITY})) == "[ nan, -inf]  shape [2]");
  BOOST_TEST(printed(Tensor<Counted>(Shape{2}, {Counted(1), Counted(-2)})) == "[ 1, -2]  shape [2]");
  BOOST_TEST(printed(Tensor<float>(Shape{0, 3})) == "[]  shape [0, 3]");
}

BOOST_AUTO_TEST_CASE(matrices_are_set_apart) {
  BOOST_TEST(printed(counting({2, 2, 2})) ==
             "[[[0, 1],\n"
             "  [2, 3]],\n"
             "\n"
             " [[4, 5],\n"
             "  [6, 7]]]  shape [2, 2, 2]");
}

BOOST_AUTO_TEST_CASE(long_axes_are_cut_in_the_middle) {
  BOOST_TEST(printed(counting({8})) == "[0, 1, 2, 3, 4, 5, 6, 7]  shape [8]");
  BOOST_TEST(printed(counting({9})) == "[0, 1, 2, ..., 6, 7, 8]  shape [9]");
  BOOST_TEST(printed(counting({100, 2})) ==
             "[[  0,   1],\n"
             " [  2,   3],\n"
             " [  4,   5],\n"
             " ...,\n"
             " [194, 195],\n"
             " [196, 197],\n"
             " [198, 199]]  shape [100, 2]");
}

// Both axes of each matrix are truncated, and so is the list of matrices.
BOOST_AUTO_TEST_CASE(every_axis_is_cut) {
  const std::string text = printed(counting({9, 10, 11}));
  std::string expected = "[";
  const auto shown = [](Index n) { return std::vector<Index>{0, 1, 2, n - 3, n - 2, n - 1}; };
  for (const Index m : shown(9)) {
    expected += m == 0 ? "[" : m == 6 ? ",\n\n ...,\n\n [" : ",\n\n [";
    for (const Index r : shown(10)) {
      expected += r == 0 ? "[" : r == 7 ? ",\n  ...,\n  [" : ",\n  [";
      for (const Index c : shown(11))
        expected += fmt::format("{}{:>3}", c == 0 ? "" : c == 8 ? ", ..., " : ", ", (m * 10 + r) * 11 + c);
      expected += "]";
    }
    expected += "]";
  }
  BOOST_TEST(text == expected + "]  shape [9, 10, 11]");
}

BOOST_AUTO_TEST_SUITE_END()
