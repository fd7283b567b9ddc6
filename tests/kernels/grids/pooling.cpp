// Landmarks: positions of cells, their means, and gradients as adjoints.
#include "heed/cost/counted.h"
#include "heed/kernels/grids/pooling.h"
#include "heed/base/random.h"

#include "support/compare.h"

#include <boost/test/unit_test.hpp>

#include <vector>

using namespace heed;
using namespace heed::test;
using kernels::Cells;
using kernels::Landmarks;

namespace {

template <class T = double>
std::vector<T> numbers(Index count, std::uint64_t seed) {
  std::vector<T> values(static_cast<std::size_t>(count));
  for (Index i = 0; i < count; ++i) values[static_cast<std::size_t>(i)] = T(RandomStream(seed).uniform(i, -1, 1));
  return values;
}

const std::vector<Landmarks> cases{
    {Landmarks::Kind::mean, 6, 0, {4, 6, 2, 3}},        {Landmarks::Kind::mean, 4, 1, {5, 7, 2, 2}},
    {Landmarks::Kind::mean, 3, 1, {1, 12, 1, 3}},       {Landmarks::Kind::convolution, 6, 0, {4, 6, 2, 3}},
    {Landmarks::Kind::convolution, 2, 1, {6, 3, 2, 1}}, {Landmarks::Kind::tokens, 5, 1, {1, 12, 1, 3}}};

/// Returns the values as rows of d elements.
template <class T>
Matrix<T> rows(std::vector<T>& values, Index d) {
  return {values.data(), static_cast<Index>(values.size()) / d, d};
}
template <class T>
Matrix<const T> rows(const std::vector<T>& values, Index d) {
  return {values.data(), static_cast<Index>(values.size()) / d, d};
}

Index tokens_of(const Landmarks& l) { return l.skip + l.cells.height * l.cells.width; }

}  // namespace

BOOST_AUTO_TEST_SUITE(pooling)

// 5 x 7 in 2 x 2 cells: rows 0-2 and 2-4, columns 0-3 and 3-6.
BOOST_AUTO_TEST_CASE(adaptive_cells_share_rows) {
  const Cells cells{5, 7, 2, 2};
  BOOST_TEST(cells.top(0) == 0);
  BOOST_TEST(cells.bottom(0) == 3);
  BOOST_TEST(cells.top(1) == 2);
  BOOST_TEST(cells.bottom(1) == 5);
  BOOST_TEST(cells.left(1) == 3);
  BOOST_TEST(cells.right(0) == 4);
  BOOST_TEST(cells.members() == 4 * 3 * 4);
  std::vector<double> x(35), out(4);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<double>(i / 7 * 10 + i % 7);  // 10 row + column
  kernels::pool_cells(cells, rows(x, 1), rows(out, 1));
  BOOST_TEST(out == (std::vector<double>{11.5, 14.5, 31.5, 34.5}));
}

BOOST_AUTO_TEST_CASE(cells_of_equal_tokens_have_equal_means) {
  std::vector<float> x(36, 0.1f), out(4);
  kernels::pool_cells(Cells{6, 6, 2, 2}, rows(x, 1), rows(out, 1));
  for (const float mean : out) BOOST_TEST(mean == out[0]);
}

BOOST_AUTO_TEST_CASE(a_convolution_with_the_weights_of_a_mean_is_the_mean) {
  const Index d = 3, stride = 5;
  const Landmarks mean = cases[0], convolution = cases[3];
  const auto x = numbers(24 * stride, 1);
  std::vector<double> weight(d * d * 4, 0.0), a(6 * d), b(6 * d);
  const LaidOut<kernels::LandmarkScratch, double> none(mean, d), patches(convolution, d);
  const Matrix<const double> tokens(x.data(), 24, d, stride);
  for (Index c = 0; c < d; ++c) std::fill_n(weight.begin() + (c * d + c) * 4, 4, 0.25);
  kernels::sample_landmarks({mean, tokens, {}, *none}, rows(a, d));
  kernels::sample_landmarks({convolution, tokens, rows(weight, convolution.taps(d)), *patches}, rows(b, d));
  for (std::size_t i = 0; i < a.size(); ++i) BOOST_TEST(std::abs(a[i] - b[i]) < 1e-15);
}

BOOST_AUTO_TEST_CASE(tokens_by_index_and_the_first_ones) {
  const std::vector<double> x{0, 10, 20, 30}, index{3, 1};
  std::vector<double> out(2);
  const Landmarks two{Landmarks::Kind::tokens, 2, 1};
  const LaidOut<kernels::LandmarkScratch, double> none(two, 1);
  kernels::sample_landmarks({two, rows(x, 1), rows(index, 1), *none}, rows(out, 1));
  BOOST_TEST(out == (std::vector<double>{30, 10}));
  kernels::sample_landmarks({two, rows(x, 1), {}, *none}, rows(out, 1));
  BOOST_TEST(out == (std::vector<double>{10, 20}));
}

// Landmarks are linear in x and in the weight, so <y, L(x)> = <L^T y, x> = <the weight's gradient, weight>.
// Gradients are accumulated.
BOOST_AUTO_TEST_CASE(gradients_are_adjoints) {
  const Index d = 2;
  for (const Landmarks& l : cases) {
    const Index n = tokens_of(l) * d, taps = l.taps(d) * d;
    const auto x = numbers(n, 1), weight = numbers(taps, 2), y = numbers(l.count * d, 3);
    const bool convolution = l.kind == Landmarks::Kind::convolution;
    const Matrix<const double> tensor = convolution ? rows(weight, l.taps(d)) : Matrix<const double>{};
    std::vector<double> out(l.count * d), dx(n, 1.0), dweight(taps, 1.0), dout = y;
    const LaidOut<kernels::LandmarkScratch, double> scratch(l, d);
    kernels::sample_landmarks({l, rows(x, d), tensor, *scratch}, rows(out, d));
    kernels::sample_landmarks_backward({l, rows(x, d), tensor, *scratch}, rows(dout, d), rows(dweight, l.taps(d)),
                                       rows(dx, d));
    for (double& value : dx) value -= 1;
    for (double& value : dweight) value -= 1;
    BOOST_TEST(std::abs(dot(dx, x) - dot(y, out)) < 1e-13);
    if (convolution) BOOST_TEST(std::abs(dot(dweight, weight) - dot(y, out)) < 1e-13);
    for (Index i = 0; i < l.skip * d; ++i) BOOST_TEST(dx[i] == 0);
  }
}

BOOST_AUTO_TEST_CASE(counts) {
  const Index d = 2;
  for (const Landmarks& l : cases) {
    const auto x = numbers<Counted>(tokens_of(l) * d, 1), weight = numbers<Counted>(l.taps(d) * d, 2);
    auto dout = numbers<Counted>(l.count * d, 3);
    const bool convolution = l.kind == Landmarks::Kind::convolution;
    const Matrix<const Counted> tensor = convolution ? rows(weight, l.taps(d)) : Matrix<const Counted>{};
    std::vector<Counted> out(dout.size()), dx(x.size()), dweight(weight.size());
    const LaidOut<kernels::LandmarkScratch, Counted> scratch(l, d);
    Counted::tally() = {};
    kernels::sample_landmarks({l, rows(x, d), tensor, *scratch}, rows(out, d));
    BOOST_TEST((Counted::tally() == kernels::landmarks_cost(l, d).forward));
    Counted::tally() = {};
    kernels::sample_landmarks_backward({l, rows(x, d), tensor, *scratch}, rows(dout, d), rows(dweight, l.taps(d)),
                                       rows(dx, d));
    BOOST_TEST((Counted::tally() == kernels::landmarks_cost(l, d).backward));
  }
}

BOOST_AUTO_TEST_SUITE_END()
