// Shapes of elementary operations: broadcast, reduced and permuted operands, compared with directly computed indices;
// errors for shapes.
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/functions.h"
#include "heed/ops/elementary/losses.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/elementary/shapes.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

using namespace heed;

namespace {

/// A tape with tensors of distinct elements.
struct Values {
  std::vector<Tensor<double>> tensors;
  std::vector<double> memory = std::vector<double>(1 << 16, 7.0);  // so that uninitialised memory is not 0
  Tape<double> tape{{}, memory};

  Var<double> of(const Shape& shape) {
    tensors.reserve(64);
    Tensor<double>& x = tensors.emplace_back(shape);
    std::iota(x.begin(), x.end(), 1.0 + 100 * static_cast<double>(tensors.size()));
    return tape.input(std::as_const(x).view());
  }
};

/// Returns the indices of an element, by axis.
std::vector<Index> indices(const Shape& shape, Index element) {
  std::vector<Index> all(static_cast<std::size_t>(shape.rank()));
  for (int axis = shape.rank() - 1; axis >= 0; element /= shape[axis--])
    all[static_cast<std::size_t>(axis)] = element % shape[axis];
  return all;
}

/// Returns the element of x that is broadcast to element `at` of a tensor of shape `to`.
double broadcast_element(Var<double> x, const Shape& to, Index at) {
  const std::vector<Index> all = indices(to, at);
  Index element = 0;
  for (int axis = 0; axis < x.shape().rank(); ++axis) {
    const Index size = x.shape()[axis], index = all[static_cast<std::size_t>(axis + to.rank() - x.shape().rank())];
    element = element * size + (size == 1 ? 0 : index);
  }
  return x.data()[element];
}

/// Returns the message of the Error that f throws; empty if it throws none.
template <class F>
std::string refused(const F& f) {
  try {
    f();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

std::vector<double> list(Var<double> x) { return {x.data(), x.data() + x.size()}; }

}  // namespace

BOOST_FIXTURE_TEST_SUITE(elementary_shapes, Values)

BOOST_AUTO_TEST_CASE(broadcasting_repeats_axes_of_size_1) {
  struct Case {
    Shape a, b, y;
  };
  for (const Case& c : {Case{{2, 3, 4}, {2, 3, 4}, {2, 3, 4}}, Case{{2, 3, 4}, {4}, {2, 3, 4}},
                        Case{{2, 3, 4}, {3, 1}, {2, 3, 4}}, Case{{2, 1, 4}, {3, 1}, {2, 3, 4}},
                        Case{{}, {2, 3}, {2, 3}}, Case{{1}, {}, {1}}, Case{{5, 1, 1, 2, 1}, {3, 1, 4}, {5, 1, 3, 2, 4}},
                        Case{{0, 3}, {1, 3}, {0, 3}}, Case{{2, 3}, {1, 1, 1}, {1, 2, 3}}}) {
    const Var<double> a = of(c.a), b = of(c.b), y = a * b + a;
    BOOST_TEST_REQUIRE(to_string(y.shape()) == to_string(c.y));
    for (Index i = 0; i < y.size(); ++i)
      BOOST_TEST(y.data()[i] ==
                 broadcast_element(a, c.y, i) * broadcast_element(b, c.y, i) + broadcast_element(a, c.y, i));
  }
}

// Operations that are not commutative do not exchange their operands, whether these are variables or numbers.
BOOST_AUTO_TEST_CASE(operands_keep_their_sides) {
  const Var<double> a = of({2, 1, 3}), b = of({4, 1}), c = of({2, 4, 1});
  const Shape all{2, 4, 3};
  const Var<double> difference = sub(a, b), quotient = div(a, b), chosen = where(c - 304.5, a, b),
                    largest = maximum(a - 100.0, b - 200.0);
  for (const Var<double>& y : {difference, quotient, chosen, largest})
    BOOST_TEST_REQUIRE(to_string(y.shape()) == to_string(all));
  for (Index i = 0; i < difference.size(); ++i) {
    const double x = broadcast_element(a, all, i), z = broadcast_element(b, all, i);
    BOOST_TEST(difference.data()[i] == x - z);
    BOOST_TEST(quotient.data()[i] == x / z);
    BOOST_TEST(chosen.data()[i] == x);  // no condition is 0
    BOOST_TEST(largest.data()[i] == std::max(x - 100, z - 200));
  }
  const Var<double> some = where(c - 303.0, a, b);  // the condition is 0 at the third element of c only
  for (Index i = 0; i < some.size(); ++i)
    BOOST_TEST(some.data()[i] == broadcast_element(broadcast_element(c, all, i) == 303 ? b : a, all, i));
  const double x = b.data()[1];
  const std::pair<Var<double>, double> of_numbers[] = {{b + 3.0, x + 3}, {3.0 + b, 3 + x}, {b - 3.0, x - 3},
                                                       {3.0 - b, 3 - x}, {b * 3.0, x * 3}, {3.0 * b, 3 * x},
                                                       {b / 3.0, x / 3}, {3.0 / b, 3 / x}, {-b, -x}};
  for (const auto& [y, expected] : of_numbers) BOOST_TEST(y.data()[1] == expected);
}

BOOST_AUTO_TEST_CASE(a_gradient_is_summed_over_what_was_repeated) {
  const Var<double> a = of({2, 3}), b = of({3}), c = of({2, 1});
  tape.backward(sum(a * b * c));
  for (Index j = 0; j < 3; ++j)
    BOOST_TEST(tape.gradient(b)[j] == a.data()[j] * c.data()[0] + a.data()[3 + j] * c.data()[1]);
  for (Index i = 0; i < 2; ++i) {
    double expected = 0;
    for (Index j = 0; j < 3; ++j) expected += a.data()[3 * i + j] * b.data()[j];
    BOOST_TEST(tape.gradient(c)[i] == expected, boost::test_tools::tolerance(1e-14));
  }
}

BOOST_AUTO_TEST_CASE(a_gradient_without_terms_is_zero) {
  const Var<double> a = of({0, 3}), b = of({1, 3});
  tape.backward(sum(a * b));
  for (const double d : tape.gradient(b)) BOOST_TEST(d == 0);
}

BOOST_AUTO_TEST_CASE(a_product_of_no_matrices_has_gradients_of_zero) {
  const Var<double> a = of({0, 4, 3}), b = of({3, 2}), c = of({2, 3}), d = of({1, 2, 4});
  tape.backward(sum(matmul(a, b)) + sum(matmul(a, transposed(c))) + sum(matmul(d, a)));
  for (const Var<double>& x : {b, c, d})
    for (const double dx : tape.gradient(x)) BOOST_TEST(dx == 0);
}

BOOST_AUTO_TEST_CASE(reductions_over_any_axes) {
  const Var<double> x = of({2, 3, 4});
  for (const std::vector<int>& axes : {std::vector<int>{0}, {1}, {-1}, {0, 1}, {2, 0}, {0, 1, 2}, {}}) {
    for (const bool keep : {false, true}) {
      const Axes given{std::span<const int>(axes)};
      const Var<double> s = sum(x, given, keep), m = mean(x, given, keep), most = max(x, given, keep);
      std::vector<bool> reduced(3, axes.empty());
      for (const int axis : axes) reduced[static_cast<std::size_t>(axis < 0 ? axis + 3 : axis)] = true;
      std::vector<double> sums, largest;
      Index count = 1, terms = 1;
      for (std::size_t axis = 0; axis < 3; ++axis) (reduced[axis] ? terms : count) *= x.shape()[static_cast<int>(axis)];
      sums.assign(static_cast<std::size_t>(count), 0), largest.assign(static_cast<std::size_t>(count), -1);
      for (Index i = 0; i < x.size(); ++i) {
        const std::vector<Index> at = indices(x.shape(), i);
        std::size_t to = 0;
        for (std::size_t axis = 0; axis < 3; ++axis)
          if (!reduced[axis])
            to = to * static_cast<std::size_t>(x.shape()[static_cast<int>(axis)]) + static_cast<std::size_t>(at[axis]);
        sums[to] += x.data()[i], largest[to] = std::max(largest[to], x.data()[i]);
      }
      BOOST_TEST(list(s) == sums, boost::test_tools::per_element());
      BOOST_TEST(list(most) == largest, boost::test_tools::per_element());
      for (double& value : sums) value /= static_cast<double>(terms);
      BOOST_TEST(list(m) == sums, boost::test_tools::per_element());
      BOOST_TEST(s.shape().rank() == (keep ? 3 : 3 - (axes.empty() ? 3 : static_cast<int>(axes.size()))));
    }
  }
}

// A long sum of floats: with pairwise summation its error grows with log n; sequentially it would be about 1e-2 here.
BOOST_AUTO_TEST_CASE(a_long_sum_stays_exact_to_its_last_digits) {
  Tensor<float> x(Shape{1 << 20});
  for (Index i = 0; i < x.size(); ++i) x[i] = 0.1f;
  Tape<float> floats;
  const double y = *sum(floats.constant(std::as_const(x).view())).data();
  BOOST_TEST(std::abs(y / (0.1f * static_cast<double>(x.size())) - 1) < 1e-6);
}

BOOST_AUTO_TEST_CASE(equal_maxima_share_the_gradient) {
  const Tensor<double> x(Shape{2, 3}, {4, 1, 4, 2, 2, 2}), one(Shape{}, {2});
  const Var<double> v = tape.input(x.view()), two = tape.input(one.view());
  tape.backward(sum(max(v, {1})) + sum(maximum(v, two)));
  const View<const double> d = tape.gradient(v);
  const std::vector<double> expected{0.5 + 1, 0, 0.5 + 1, 1.0 / 3 + 0.5, 1.0 / 3 + 0.5, 1.0 / 3 + 0.5};
  for (Index i = 0; i < 6; ++i)
    BOOST_TEST(d[i] == expected[static_cast<std::size_t>(i)], boost::test_tools::tolerance(1e-15));
  BOOST_TEST(tape.gradient(two)[0] == 1 + 3 * 0.5);
}

BOOST_AUTO_TEST_CASE(what_is_not_a_number_stays_one) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Tensor<double> x(Shape{2, 2}, {1, nan, nan, 1}), zero(Shape{}, {0});
  const Var<double> v = tape.constant(x.view()), z = tape.constant(zero.view());
  for (Index i = 0; i < 2; ++i) BOOST_TEST(std::isnan(max(v, {1}).data()[i]));
  BOOST_TEST(std::isnan(maximum(v, z).data()[1]));
  BOOST_TEST(std::isnan(maximum(z, v).data()[1]));
  BOOST_TEST(std::isnan(abs(v).data()[1]));
}

BOOST_AUTO_TEST_CASE(moves) {
  const Var<double> x = of({2, 3, 4});
  const auto at = [&](Index i, Index j, Index k) { return x.data()[(i * 3 + j) * 4 + k]; };
  const Var<double> t = transpose(x, {2, 0, 1});
  BOOST_TEST(to_string(t.shape()) == "[4, 2, 3]");
  const Var<double> w = swap_axes(x, 0, 2), r = reshape(x, {4, -1}), c = slice(x, -1, 1, 3);
  const Var<double> g = gather_rows(x, {1, 1, 0}), j = join({x, c}, 2), s = stack({x, x}, -1);
  BOOST_TEST(to_string(r.shape()) == "[4, 6]");
  BOOST_TEST(to_string(j.shape()) == "[2, 3, 6]");
  BOOST_TEST(to_string(s.shape()) == "[2, 3, 4, 2]");
  for (Index a = 0; a < 2; ++a)
    for (Index b = 0; b < 3; ++b)
      for (Index d = 0; d < 4; ++d) {
        BOOST_TEST(t.data()[(d * 2 + a) * 3 + b] == at(a, b, d));
        BOOST_TEST(w.data()[(d * 3 + b) * 2 + a] == at(a, b, d));
        BOOST_TEST(r.data()[(a * 3 + b) * 4 + d] == at(a, b, d));
        BOOST_TEST(g.data()[((a + 1) * 3 + b) * 4 + d] == at(1 - a, b, d));
        BOOST_TEST(j.data()[(a * 3 + b) * 6 + d] == at(a, b, d));
        BOOST_TEST(s.data()[((a * 3 + b) * 4 + d) * 2 + 1] == at(a, b, d));
        if (d < 2) BOOST_TEST(c.data()[(a * 3 + b) * 2 + d] == at(a, b, d + 1));
        if (d < 2) BOOST_TEST(j.data()[(a * 3 + b) * 6 + 4 + d] == at(a, b, d + 1));
      }
}

BOOST_AUTO_TEST_CASE(products_of_batches) {
  const Var<double> a = of({2, 1, 3, 4}), b = of({5, 6, 4});
  const Var<double> y = matmul(a, transposed(b));
  BOOST_TEST(to_string(y.shape()) == "[2, 5, 3, 6]");
  for (Index i = 0; i < y.size(); ++i) {
    const std::vector<Index> at = indices(y.shape(), i);
    double expected = 0;
    for (Index k = 0; k < 4; ++k)
      expected += a.data()[(at[0] * 3 + at[2]) * 4 + k] * b.data()[(at[1] * 6 + at[3]) * 4 + k];
    BOOST_TEST(y.data()[i] == expected);
  }
  // As a separate value, transposed() is a copy.
  const Var<double> copy = transposed(b);
  const Var<double> again = matmul(a, copy);
  BOOST_TEST(list(again) == list(y), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(shapes_that_do_not_fit_are_named) {
  const Var<double> x = of({2, 3, 4}), y = of({2, 4}), square = of({3, 3});
  BOOST_TEST(
      refused([&] { add(x, y); }) ==
      "[add] shapes [2, 3, 4] and [2, 4] cannot be broadcast; aligned at the last axis, sizes must be equal or 1");
  BOOST_TEST(refused([&] { where(y, x, x); }).starts_with("[where] shapes [2, 4] and [2, 3, 4]"));
  BOOST_TEST(refused([&] { matmul(x, y); }) ==
             "[matmul] a has shape [2, 3, 4], b has [2, 4]; expected [..., m, k] and [..., k, n]");
  BOOST_TEST(refused([&] { matmul(x, transposed(square)); }) ==
             "[matmul] a has shape [2, 3, 4], b has [3, 3] transposed; expected [..., m, k] and [..., k, n]");
  BOOST_TEST(refused([&] {
               matmul(x, of({5, 4, 2}));
             }) ==
             "[matmul] a has shape [2, 3, 4], b has [5, 4, 2]; their leading axes [2] and [5] cannot be broadcast");
  BOOST_TEST(refused([&] {
               reshape(x, {5, -1});
             }).starts_with("[reshape] shape [2, 3, 4] has 24 elements, [5, 4] has 20"));
  BOOST_TEST(refused([&] { reshape(x, {-1, -1}); }) == "[reshape] -1 is given twice; one size can be inferred");
  BOOST_TEST(refused([&] { transpose(x, {0, 1}); }) == "[transpose] 2 axes are given for shape [2, 3, 4]; expected 3");
  BOOST_TEST(refused([&] { transpose(x, {0, 1, -3}); }) == "[transpose] axis -3 is given twice");
  BOOST_TEST(refused([&] { sum(x, {3}); }) == "[sum] shape [2, 3, 4] has no axis 3");
  BOOST_TEST(refused([&] { sum(x, {0, -3}); }) == "[sum] axis -3 is given twice");
  BOOST_TEST(refused([&] {
               mean(of({0, 3}), {0});
             }) == "[mean] shape [0, 3] has no elements along these axes; at least one is needed");
  BOOST_TEST(refused([&] { slice(x, 1, 2, 4); }) == "[slice] indices 2 to 4 of axis 1; the axis has 3 elements");
  BOOST_TEST(refused([&] { join({x, y}, 0); }) == "[join] shapes [2, 3, 4] and [2, 4] differ in an axis other than 0");
  BOOST_TEST(refused([&] { stack({x, y}); }) == "[stack] shapes [2, 3, 4] and [2, 4] differ");
  BOOST_TEST(refused([&] { gather_rows(x, {2}); }) == "[gather_rows] index 2; expected 0 to 1 for shape [2, 3, 4]");
  BOOST_TEST(refused([&] {
               mean_squared_error(x, of({2, 3, 1}));
             }) == "[mean_squared_error] y has shape [2, 3, 4], the target [2, 3, 1]; they must match");
  const int labels[] = {0, 4};
  BOOST_TEST(refused([&] { cross_entropy(y, std::span<const int>(labels)); }) ==
             "[cross_entropy] label 4; expected 0 to 3");
}

BOOST_AUTO_TEST_SUITE_END()
