#include "heed/kernels/rows/softmax.h"

#include "support/compare.h"

#include "heed/kernels/products/gemm.h"

using namespace heed;
using namespace heed::test;
using kernels::ScoreRows;

namespace {

/// Returns normal scores with standard deviation 10^(r mod 5) in row r.
std::vector<double> scores(Index rows, Index stride) {
  auto s = normal_floats(rows * stride, 1);
  for (Index r = 0; r < rows; ++r)
    for (Index j = 0; j < stride; ++j) s[r * stride + j] = static_cast<float>(s[r * stride + j] * std::pow(10, r % 5));
  return s;
}

double row_maximum(const ScoreRows& rule, Matrix<const double> s, Index r) {
  double maximum = -INFINITY;
  for (Index j = 0; j < rule.length(r, s.columns); ++j) maximum = std::max(maximum, rule.scale * s(r, j));
  return maximum;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(kernels_softmax)

BOOST_AUTO_TEST_CASE(softmax_rows_at_every_length) {
  for (const Index n : lengths)
    for (const Index rows : {1, 5, 37}) {
      const Index stride = n + 3;
      const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, n, stride); };
      const auto pairs = [=](auto& kept) { return Matrix(kept.data(), rows, 2); };
      const auto s = scores(rows, stride);
      std::vector<double> p(s), kept(2 * rows);
      Guarded fp(s, 1), fkept(2 * rows, 1);
      kernels::reference::softmax_rows(matrix(p), pairs(kept));
      kernels::softmax_rows(matrix(fp), pairs(fkept));
      require_close("p", fp, p, [&](std::size_t i) {
        const double maximum = row_maximum({1.0}, matrix(s), static_cast<Index>(i) / stride);
        return p[i] * (3e-7 + 6e-8 * (n / 4.0 + std::abs(s[i] - maximum))) + 2e-38;
      });
      require_close("kept", fkept, kept, [&](std::size_t i) { return 1e-6 * (n / 4.0 + std::abs(kept[i])); });
      Guarded again(s, 2);
      kernels::softmax_rows(matrix(again));
      for (Index i = 0; i < rows * stride; ++i) BOOST_REQUIRE(again[i] == fp[i]);
    }
}

// A row's result does not depend on the number of rows processed at a time, nor, therefore, on the division between
// threads.
BOOST_AUTO_TEST_CASE(a_row_does_not_depend_on_its_neighbours) {
  for (const Index n : lengths) {
    const Index rows = 7;
    const auto s = scores(rows, n);
    Guarded together(s, 1), alone(s, 1), kept(2 * rows, 0), kept_alone(2 * rows, 0);
    const auto matrix = [=](Guarded& numbers) { return Matrix(numbers.data(), rows, n); };
    const auto pairs = [=](Guarded& numbers) { return Matrix(numbers.data(), rows, 2); };
    kernels::softmax_rows(matrix(together), pairs(kept));
    for (Index r = 0; r < rows; ++r)
      kernels::softmax_rows(matrix(alone).middle_rows(r, 1), pairs(kept_alone).middle_rows(r, 1));
    for (Index i = 0; i < rows * n; ++i) BOOST_REQUIRE(together[i] == alone[i]);
    for (Index i = 0; i < 2 * rows; ++i) BOOST_REQUIRE(kept[i] == kept_alone[i]);
  }
}

// Scaled rows, whole and causal: forward, recomputation and backward. For a score x, exp's argument has the rounding
// errors of scale x and of the maximum, 6e-8 of each.
BOOST_AUTO_TEST_CASE(attention_rows) {
  for (const Index n : lengths)
    for (const bool causal : {false, true}) {
      const Index rows = 11, stride = n + 5;
      const auto matrix = [=](auto& numbers) { return Matrix(numbers.data(), rows, n, stride); };
      const auto pairs = [=](auto& kept) { return Matrix(kept.data(), rows, 2); };
      const ScoreRows rule{0.35355339, causal, std::max<Index>(1, n - 7)};
      const auto s = scores(rows, stride), dp = normal_floats(rows * stride, 2);
      const auto argument_error = [&](std::size_t i) {
        const double maximum = row_maximum(rule, matrix(s), static_cast<Index>(i) / stride);
        return 3e-7 + 1.5e-8 * n + 1.2e-7 * (std::abs(rule.scale * s[i]) + std::abs(maximum));
      };
      std::vector<double> p(s), kept(2 * rows);
      Guarded fp(s, 1), fkept(2 * rows, 0);
      kernels::reference::attention_softmax(rule, matrix(p), pairs(kept));
      kernels::attention_softmax(rule, matrix(fp), pairs(fkept));
      const auto p_bound = [&](std::size_t i) { return p[i] * argument_error(i) + 2e-38; };
      require_close("p", fp, p, p_bound);

      Guarded again(s, 3);
      kernels::attention_softmax_again(rule, matrix(again), pairs(fkept));
      for (Index i = 0; i < rows * stride; ++i)
        if (i % stride < n) BOOST_REQUIRE(again[i] == fp[i]);

      std::vector<double> ds(dp), p_float(p.size());
      for (std::size_t i = 0; i < p.size(); ++i) p_float[i] = fp[static_cast<Index>(i)];
      Guarded fds(dp, 2);
      kernels::reference::attention_softmax_backward(rule, matrix(p_float), matrix(ds));
      kernels::attention_softmax_backward(rule, matrix(fp), matrix(fds));
      // The row's weighted sum is at most max |dp| < 6, with a few relative rounding errors of 6e-8.
      require_close("ds", fds, ds, [&](std::size_t i) { return 3e-7 * std::abs(ds[i]) + 3e-6 * p_float[i] + 1e-38; });
    }
}

// Splitting the keys at any width gives the whole row's softmax times the values, whichever part has the maximum, and
// even if causal rows end before the last part begins.
BOOST_AUTO_TEST_CASE(parts_of_rows) {
  const Index rows = 9, n = 70, width = 5;
  const auto s = scores(rows, n), values = normal_floats(n * width, 7);
  for (const bool causal : {false, true})
    for (const Index part : {1, 16, 25, 69, 70}) {
      const ScoreRows whole{0.5, causal, 20};
      auto p = s;
      kernels::reference::attention_softmax(whole, Matrix(p.data(), rows, n));
      const auto check = [&](auto number, const auto& softmax_part, double tolerance) {
        using T = decltype(number);
        std::vector<T> e(s.begin(), s.end()), v(values.begin(), values.end());
        std::vector<T> sums(2 * rows), out(rows * width, T(77));
        const Matrix<T> E(e.data(), rows, n), Out(out.data(), rows, width), Sums(sums.data(), rows, 2);
        const Matrix<const T> V(v.data(), n, width);
        for (Index first = 0; first < n; first += part) {
          const Index keys = std::min(part, n - first);
          const Update update = first == 0 ? Update::assign : Update::accumulate;
          softmax_part(ScoreRows{0.5, causal, 20 - first}, E.middle_columns(first, keys), update, Sums, Out);
          kernels::reference::gemm<T>(E.middle_columns(first, keys), V.middle_rows(first, keys), update, Out);
        }
        kernels::divide_by_sums(Sums, Out);
        for (Index r = 0; r < rows; ++r)
          for (Index c = 0; c < width; ++c) {
            double expected = 0;
            for (Index j = 0; j < n; ++j) expected += p[r * n + j] * values[j * width + c];
            BOOST_REQUIRE_SMALL(static_cast<double>(Out(r, c)) - expected, tolerance);
          }
      };
      check(0.0, kernels::reference::attention_softmax_part<double>, 1e-13);
      // Scores of about 1e4 have rounding errors of 1.2e-7 of their size.
      check(
          0.0f, [](const auto&... x) { kernels::attention_softmax_part(x...); }, 1e-2);
    }
}

// The backward pass of a part of the columns, given the sums of whole rows, gives the results of whole rows, even if a
// causal row ends before the part.
BOOST_AUTO_TEST_CASE(backward_of_some_columns) {
  const Index rows = 9, n = 40, first = 24, part = 16;
  for (const bool causal : {false, true}) {
    const ScoreRows rule{0.5, causal, 20}, of_part{0.5, causal, 20 - first};
    const auto dp = normal_floats(rows * n, 2);
    auto p = scores(rows, n);
    kernels::reference::attention_softmax(rule, Matrix(p.data(), rows, n));
    const auto check = [&](auto number, const auto& backward, const auto& from_sums) {
      using T = decltype(number);
      std::vector<T> weights(p.begin(), p.end()), whole(dp.begin(), dp.end()), sums(rows);
      const Matrix<const T> A(weights.data(), rows, n);
      for (Index r = 0; r < rows; ++r)
        for (Index j = 0; j < n; ++j)
          sums[static_cast<std::size_t>(r)] += A(r, j) * whole[static_cast<std::size_t>(r * n + j)];
      std::vector<T> some(whole);
      backward(rule, A, Matrix(whole.data(), rows, n));
      from_sums(of_part, A.middle_columns(first, part), sums.data(),
                Matrix(some.data(), rows, n).middle_columns(first, part));
      for (Index i = 0; i < rows * n; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const double expected = i % n >= first ? static_cast<double>(whole[at]) : dp[at];
        BOOST_TEST(std::abs(some[at] - expected) <= 1e-6);
      }
    };
    check(0.0, kernels::reference::attention_softmax_backward<double>,
          kernels::reference::attention_softmax_backward_from_sums<double>);
    const auto fast = [](const auto&... x) { kernels::attention_softmax_backward(x...); };
    check(0.0f, fast, [](const auto&... x) { kernels::attention_softmax_backward_from_sums(x...); });
  }
}

BOOST_AUTO_TEST_CASE(special_scores) {
  Guarded p({1e4, -1e4, 0, -INFINITY, 1e4}, 1), kept(2, 0);
  kernels::softmax_rows(Matrix(p.data(), 1, 5), Matrix(kept.data(), 1, 2));
  require_close("large", p, {0.5, 0, 0, 0, 0.5}, [](std::size_t) { return 1e-7; });
  require_close("kept", kept, {1e4, 2}, [](std::size_t) { return 1e-6; });
  for (Index position = 0; position < 20; ++position) {
    Guarded row(20, 1, 0.5f);
    row.data()[position] = NAN;
    kernels::softmax_rows(Matrix(row.data(), 1, 20));
    for (Index j = 0; j < 20; ++j) BOOST_REQUIRE(std::isnan(row[j]));
    Guarded infinite(20, 1, 0.5f);
    infinite.data()[position] = INFINITY;
    kernels::softmax_rows(Matrix(infinite.data(), 1, 20));
    BOOST_REQUIRE(std::isnan(infinite[position]));
  }
  // exp alone, as a row with maximum 0 and sum 1: NaN is preserved, very negative values give zero.
  Guarded values({0.0, -200, -INFINITY, NAN, 88, -87}, 3), unit({0, 1}, 0);
  kernels::attention_softmax_again({1.0}, Matrix(values.data(), 1, 6), Matrix(unit.data(), 1, 2));
  const std::vector<double> expected{1, 0, 0, NAN, std::exp(88.0), std::exp(-87.0)};
  require_close("exp", values, expected, [&](std::size_t i) { return 5e-7 * expected[i]; });
}

BOOST_AUTO_TEST_CASE(exp_is_within_its_bound) {
  const Index n = 350'001;
  std::vector<double> x(n), y(n);
  for (Index i = 0; i < n; ++i) {
    x[i] = static_cast<float>(-87.3 + 5e-4 * static_cast<double>(i));
    y[i] = std::exp(x[i]);
  }
  Guarded fast(x, 0), unit({0, 1}, 0);
  kernels::attention_softmax_again({1.0}, Matrix(fast.data(), 1, n), Matrix(unit.data(), 1, 2));
  require_close("exp", fast, y, [&](std::size_t i) { return y[i] * (1.5e-7 + 3e-9 * std::abs(x[i])); });
}

BOOST_AUTO_TEST_SUITE_END()
