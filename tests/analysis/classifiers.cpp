// Nearest neighbours and ridge regression, compared with hand calculations and their definitions.
#include "heed/analysis/classifiers.h"
#include "heed/base/random.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <limits>
#include <tuple>

using namespace heed;

namespace {

using Numbers = std::tuple<float, double>;

Tensor<double> random_rows(Index count, Index width, std::uint64_t seed) {
  Tensor<double> rows(Shape{count, width});
  for (Index i = 0; i < rows.size(); ++i) rows[i] = RandomStream(seed).normal(i) + 0.5;
  return rows;
}

std::vector<int> random_labels(Index count, Index classes) {
  std::vector<int> labels;
  for (Index i = 0; i < count; ++i) labels.push_back(static_cast<int>(RandomStream(9).below(i, classes)));
  return labels;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(classifiers)

// Cosines with (1, 0): 1, 0, -1, and 0 for the zero row.
BOOST_AUTO_TEST_CASE(neighbours_by_hand) {
  const Features<double> teachers{Tensor<double>(Shape{4, 2}, {5, 0, 0, 2, -1, 0, 0, 0}), {1, 0, 2, 2}};
  const Tensor<double> test(Shape{1, 2}, {3, 0});
  const Tensor<double> three = Neighbours<double>(teachers, 3, {3, 0.5}).scores(test);
  BOOST_TEST(three[0] == 1);
  BOOST_TEST(std::abs(three[1] - std::exp(2)) < 1e-14);
  BOOST_TEST(three[2] == 1);
  BOOST_TEST(Neighbours<double>(teachers, 3, {2, 0.5}).scores(test)[2] == 0);  // rows 1, 3 tie for second; row 1 counts
  BOOST_TEST(Neighbours<double>(teachers, 3, {4, 0.5}).scores(test)[2] == 1 + std::exp(-2));
  BOOST_TEST(answers_of(three) == (std::vector<int>{1}), boost::test_tools::per_element());
  BOOST_TEST(answers_of(Tensor<double>(Shape{2, 3}, {1, 2, 2, 5, 5, 1})) == (std::vector<int>{1, 0}),
             boost::test_tools::per_element());
}

// The squared lengths of the test row and of the last two training rows overflow.
BOOST_AUTO_TEST_CASE_TEMPLATE(neighbours_of_huge_features, T, Numbers) {
  const T most = std::numeric_limits<T>::max(), root = std::sqrt(most);
  const Features<T> teachers{Tensor<T>(Shape{3, 2}, {0, 1, -most, most, root, root}), {0, 1, 2}};
  const Tensor<double> scores = Neighbours<T>(teachers, 3, {1, 1}).scores(Tensor<T>(Shape{1, 2}, {most, most}));
  BOOST_TEST(scores[0] == 0);
  BOOST_TEST(scores[1] == 0);
  BOOST_TEST(std::abs(scores[2] - std::exp(1)) < 1e-6);
}

BOOST_AUTO_TEST_CASE(neighbours_that_cannot_be) {
  const Features<double> teachers{random_rows(4, 2, 1), {1, 0, 2, 2}};
  const auto with = [&](const NeighbourRule& rule) { return error_of([&] { Neighbours<double>(teachers, 3, rule); }); };
  BOOST_TEST(with({5}) == "k = 5 nearest neighbours of 4 training examples; expected 1 to 4");
  BOOST_TEST(with({0}).starts_with("k = 0 "));
  BOOST_TEST(with({2, 0.001}).starts_with("nearest neighbours, temperature = 0.001: "));
  BOOST_TEST(with({2, 0.002}) == "no error");
  BOOST_TEST(with({2, -0.5}).starts_with("nearest neighbours, temperature = -0.5: expected more than 0"));
  // exp(709) is 0.46 of the largest double; exp(1 / 0.0112) = 6e38 exceeds the largest float, 3.4e38.
  BOOST_TEST(with({2, 1 / 709.0}) == "no error");
  BOOST_TEST(with({3, 1 / 709.0}).ends_with("large enough that 3 exp(1 / temperature) is finite"));
  const Features<float> in_float{Tensor<float>(Shape{2, 1}, {1, 2}), {0, 1}};
  BOOST_TEST(error_of([&] { Neighbours<float>(in_float, 2, {1, 0.0112}); }).starts_with("nearest neighbours, "));
  BOOST_TEST(error_of([&] { Neighbours<float>(in_float, 2, {1, 0.0115}); }) == "no error");
  BOOST_TEST(with({1, 0.0112}) == "no error");
}

// One feature with mean 1 and deviation 1 is standardised to x = -+1/(1 + 1e-5). With a bias column b, l2 = l and
// targets y = -+1, W = (x . y / (x . x + l), b sum y / (n b^2 + l)).
BOOST_AUTO_TEST_CASE(ridge_by_hand) {
  const Features<double> teachers{Tensor<double>(Shape{2, 1}, {0, 2}), {0, 1}};
  const Tensor<double> test(Shape{1, 1}, {4});
  const double x = 1 / (1 + 1e-5), slope = 2 * x / (2 * x * x + 3);
  const Tensor<double> scores = ridge_scores(teachers, test, 2, {3, 10});
  BOOST_TEST(std::abs(scores[0] + slope * 3 * x) < 1e-14);
  BOOST_TEST(std::abs(scores[1] - slope * 3 * x) < 1e-14);
  // A third class without examples has the target -1 in every row, which the bias alone fits.
  const Tensor<double> three = ridge_scores(teachers, test, 3, {3, 10});
  BOOST_TEST(std::abs(three[2] + 10 * 10 * 2 / (2 * 100 + 3.0)) < 1e-14);
}

// The weights W = (X^T X + l2 I)^-1 X^T Y minimise the loss, whether there are more training rows than columns or
// fewer: the gradient X^T (X W - Y) + l2 W is 0, column by column.
BOOST_AUTO_TEST_CASE(ridge_is_a_minimum) {
  constexpr Index classes = 4;
  constexpr double l2 = 2, bias = 3;
  for (const Index n : {30, 7}) {
    const Index width = 11;
    const Features<double> teachers{random_rows(n, width, 3), random_labels(n, classes)};
    // W is read from the scores of unit vectors: the test row mean + e (sd + 1e-5) is standardised to e.
    std::vector<double> mean(width), sd(width);
    for (Index c = 0; c < width; ++c) {
      for (Index i = 0; i < n; ++i) mean[c] += teachers.values[i * width + c] / n;
      for (Index i = 0; i < n; ++i) sd[c] += std::pow(teachers.values[i * width + c] - mean[c], 2) / n;
      sd[c] = std::sqrt(sd[c]) + 1e-5;
    }
    Tensor<double> units(Shape{width + 1, width});
    for (Index r = 0; r <= width; ++r)
      for (Index c = 0; c < width; ++c) units[r * width + c] = mean[c] + (r == c ? sd[c] : 0);
    const Tensor<double> of_units = ridge_scores(teachers, units, classes, {l2, bias});
    const double* const constant = of_units.data() + width * classes;
    double worst = 0;
    for (Index k = 0; k < classes; ++k)
      for (Index c = 0; c <= width; ++c) {
        const double w = c == width ? constant[k] / bias : of_units[c * classes + k] - constant[k];
        double gradient = l2 * w;
        for (Index i = 0; i < n; ++i) {
          double y = constant[k];
          for (Index j = 0; j < width; ++j)
            y += (teachers.values[i * width + j] - mean[j]) / sd[j] * (of_units[j * classes + k] - constant[k]);
          const double x = c == width ? bias : (teachers.values[i * width + c] - mean[c]) / sd[c];
          gradient += x * (y - (teachers.labels[i] == k ? 1 : -1));
        }
        worst = std::max(worst, std::abs(gradient));
      }
    BOOST_TEST(worst < 1e-11);
  }
}

// A constant training feature has no effect, whatever its value in a test row.
BOOST_AUTO_TEST_CASE(ridge_of_a_constant_feature) {
  constexpr Index n = 49;
  const Tensor<double> rows = random_rows(n + 1, 1, 5);
  Features<double> one{Tensor<double>(Shape{n, 1}), random_labels(n, 3)}, two{Tensor<double>(Shape{n, 2}), one.labels};
  for (Index i = 0; i < n; ++i) {
    one.values[i] = two.values[2 * i] = rows[i];
    two.values[2 * i + 1] = -0.1;
  }
  const Tensor<double> expected = ridge_scores(one, Tensor<double>(Shape{1, 1}, {rows[n]}), 3, {});
  const Tensor<double> found = ridge_scores(two, Tensor<double>(Shape{1, 2}, {rows[n], 0.7}), 3, {});
  for (Index k = 0; k < 3; ++k) BOOST_TEST(std::abs(found[k] - expected[k]) < 1e-13);
}

BOOST_AUTO_TEST_CASE(ridge_without_a_solution) {
  const Features<double> teachers{Tensor<double>(Shape{4, 2}, {1, 5, 2, 5, 4, 5, 7, 5}), {0, 1, 0, 1}};
  const auto with = [&](double l2) {
    return error_of([&] { ridge_scores(teachers, random_rows(1, 2, 2), 2, {l2, 1}); });
  };
  BOOST_TEST(with(0).starts_with("ridge regression, l2 = 0: the system of 3 unknowns is singular"));
  BOOST_TEST(with(-1).starts_with("ridge regression with l2 = -1 and bias = 1; expected"));
  BOOST_TEST(with(1) == "no error");
  constexpr double infinity = std::numeric_limits<double>::infinity();
  BOOST_TEST(with(infinity).starts_with("ridge regression with l2 = inf and bias = 1; expected"));
  BOOST_TEST(error_of([&] {
               ridge_scores(teachers, random_rows(1, 2, 2), 2, {1, infinity});
             }).starts_with("ridge regression with l2 = 1 and bias = inf; expected"));
}

// Up to rounding, a row's scores do not depend on the other rows, even if there are several blocks of 256 rows.
// Products of one row and of many rows add their terms in different orders.
BOOST_AUTO_TEST_CASE(scores_of_many_rows_are_those_of_each) {
  constexpr Index width = 5, count = 600, classes = 3;
  const Features<double> teachers{random_rows(40, width, 3), random_labels(40, classes)};
  const Tensor<double> test = random_rows(count, width, 4);
  const Neighbours<double> neighbours(teachers, classes, {7, 0.5});
  const Tensor<double> near = neighbours.scores(Tensor<double>(test)),
                       ridge = ridge_scores(teachers, test, classes, {});
  for (const Index row : {0, 1, 255, 256, 300, 511, 512, 599}) {
    Tensor<double> one(Shape{1, width});
    std::copy_n(test.data() + row * width, width, one.data());
    const Tensor<double> ridge_alone = ridge_scores(teachers, one, classes, {}),
                         near_alone = neighbours.scores(std::move(one));
    for (Index k = 0; k < classes; ++k) {
      BOOST_TEST(std::abs(near[row * classes + k] - near_alone[k]) < 1e-12, row);
      BOOST_TEST(std::abs(ridge[row * classes + k] - ridge_alone[k]) < 1e-12, row);
    }
  }
}

// The rules of DINO's nearest neighbours and of big_vision's 10-shot probe.
BOOST_AUTO_TEST_CASE(rules_are_the_published_ones) {
  BOOST_TEST(NeighbourRule().k == 20);
  BOOST_TEST(NeighbourRule().temperature == 0.07);
  BOOST_TEST(RidgeRule().l2 == 1024);
  BOOST_TEST(RidgeRule().bias == 100);
}

BOOST_AUTO_TEST_CASE(classes_are_numbered_from_0) {
  BOOST_TEST(classes_of({}) == 0);
  BOOST_TEST(classes_of({0}) == 1);
  BOOST_TEST(classes_of({2, 7, 0}) == 8);
}

BOOST_AUTO_TEST_SUITE_END()
