// Nystroemformer compared with hand-calculated values and its definition. tests/checks/cases.cpp checks gradients,
// costs and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

/// The tokens of each landmark.
using Members = std::vector<std::vector<Index>>;

/// Returns the mean of each landmark's tokens.
SlowMatrix means(const SlowMatrix& x, const Members& landmarks) {
  SlowMatrix sums(static_cast<Index>(landmarks.size()), x.columns);
  for (Index l = 0; l < sums.rows; ++l) {
    const std::vector<Index>& tokens = landmarks[static_cast<std::size_t>(l)];
    for (const Index t : tokens)
      for (Index c = 0; c < x.columns; ++c) sums(l, c) += x(t, c) / static_cast<double>(tokens.size());
  }
  return sums;
}

SlowMatrix scores(const SlowMatrix& x, const SlowMatrix& y) {
  SlowMatrix s(x.rows, y.rows);
  for (Index i = 0; i < x.rows; ++i)
    for (Index j = 0; j < y.rows; ++j)
      for (Index c = 0; c < x.columns; ++c) s(i, j) += x(i, c) * y(j, c) / std::sqrt(static_cast<double>(x.columns));
  return slow_softmax(s);
}

/// Returns a I - m.
SlowMatrix minus(double a, SlowMatrix m) {
  for (Index i = 0; i < m.rows; ++i)
    for (Index j = 0; j < m.columns; ++j) m(i, j) = (i == j ? a : 0) - m(i, j);
  return m;
}

SlowMatrix inverse(const SlowMatrix& A, Index iterations) {
  double column_norm = 0, row_norm = 0;
  for (Index i = 0; i < A.rows; ++i) {
    double column = 0, row = 0;
    for (Index j = 0; j < A.rows; ++j) row += std::abs(A(i, j)), column += std::abs(A(j, i));
    column_norm = std::max(column_norm, column), row_norm = std::max(row_norm, row);
  }
  SlowMatrix Z(A.rows, A.rows);
  for (Index i = 0; i < A.rows; ++i)
    for (Index j = 0; j < A.rows; ++j) Z(i, j) = A(j, i) / (column_norm * row_norm);
  for (Index k = 0; k < iterations; ++k) {
    const SlowMatrix W = A * Z;
    Z = Z * minus(13, W * minus(15, W * minus(7, W)));
    for (double& z : Z.values) z /= 4;
  }
  return Z;
}

MapDefinition definition(const Members& of_q, const Members& of_k, Index iterations) {
  return [=](const DefinitionHead& x) {
    SlowMatrix q(x.N(), x.d()), k(x.M(), x.d());
    for (Index c = 0; c < x.d(); ++c) {
      for (Index i = 0; i < x.N(); ++i) q(i, c) = x.q(i, c);
      for (Index j = 0; j < x.M(); ++j) k(j, c) = x.k(j, c);
    }
    const SlowMatrix ql = means(q, of_q), kl = means(k, of_k);
    return scores(q, kl) * inverse(scores(ql, kl), iterations) * scores(ql, k);
  };
}

/// Returns `count` segments of equal length; count divides the number of tokens.
Members segments(Index tokens, Index count) {
  Members all(static_cast<std::size_t>(count));
  for (Index t = 0; t < tokens; ++t) all[static_cast<std::size_t>(t / (tokens / count))].push_back(t);
  return all;
}

Tensors operands(Index N, Index M) {
  return {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
          {"k", random_tensor({2, 2, M, 4}, 2, 2)},
          {"v", random_tensor({2, 2, M, 3}, 3)},
          {"dout", random_tensor({2, 2, N, 3}, 4)}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nystrom)

// One landmark, the mean of all: A and F are ones. Z = 1 is a fixed point of the iteration. q = k = (ln 3, -ln 3) has
// mean 0, so that B = (1/2, 1/2), and out = mean of v.
BOOST_AUTO_TEST_CASE(one_landmark_by_hand) {
  const double ln3 = std::log(3.0);
  for (const char* iterations : {"0", "1", "6"}) {
    const Tensors r = run_mechanism<double>(
        "nystrom", {{"landmarks", "1"}, {"iterations", iterations}},
        {{"q", tokens(2, 1, {ln3, -ln3})}, {"k", tokens(2, 1, {ln3, -ln3})}, {"v", tokens(2, 1, {4, 8})}});
    check_near(r.at("out"), {6, 6});
    check_near(r.at("map"), {0.5, 0.5, 0.5, 0.5});
    check_near(r.at("dv"), {1, 1});
  }
}

// One landmark per token: F = A = B and Z = A^-1, so the map equals softmax attention's.
BOOST_AUTO_TEST_CASE(all_tokens_are_landmarks) {
  Tensors x = operands(6, 6);
  const Tensors softmax = run_mechanism<double>("softmax", {}, x);
  const Tensors nystrom = run_mechanism<double>("nystrom", {{"landmarks", "6"}, {"iterations", "40"}}, x);
  check_same(nystrom, {{"out", softmax.at("out")}, {"map", softmax.at("map")}}, 1e-9, "landmarks = tokens");
}

BOOST_AUTO_TEST_CASE(by_definition_with_segments) {
  struct Sizes {
    Index N, M, m;
  };
  for (const auto& [N, M, m] : {Sizes{1, 1, 1}, {50, 50, 10}, {9, 60, 3}, {60, 4, 2}})
    for (const Index iterations : {0, 1, 2, 6})
      check_definition("nystrom", {{"landmarks", std::to_string(m)}, {"iterations", std::to_string(iterations)}},
                       operands(N, M), definition(segments(N, m), segments(M, m), iterations));
}

// A grid of 4 x 6 in cells of 2 x 2. Tokens before the grid (none, a class token, or also two registers) are queries
// and keys, but in no landmark.
BOOST_AUTO_TEST_CASE(by_definition_with_cells) {
  for (const Index class_token : {0, 1, 3}) {
    Members cells(6);
    for (Index y = 0; y < 4; ++y)
      for (Index x = 0; x < 6; ++x)
        cells[static_cast<std::size_t>(y / 2 * 3 + x / 2)].push_back(y * 6 + x + class_token);
    check_definition("nystrom", {{"ratio", "2"}}, operands(24 + class_token, 24 + class_token),
                     definition(cells, cells, 6), {.grid_height = 4, .grid_width = 6, .class_token = class_token});
  }
}

// If the number of landmarks does not divide a sequence's length, neighbouring segments share tokens. A sequence with
// fewer tokens than landmarks has a landmark per token.
BOOST_AUTO_TEST_CASE(sequences_by_definition) {
  const std::pair<Index, Members> sequences[] = {{7, {{0, 1, 2}, {2, 3, 4}, {4, 5, 6}}},
                                                 {8, {{0, 1, 2}, {2, 3, 4, 5}, {5, 6, 7}}},
                                                 {9, {{0, 1, 2}, {3, 4, 5}, {6, 7, 8}}},
                                                 {2, {{0}, {1}}}};
  for (const auto& [N, members] : sequences)
    check_definition("nystrom", {{"landmarks", "3"}, {"iterations", "2"}}, operands(N, N),
                     definition(members, members, 2), {.longest = 9, .whole = false});
}

BOOST_AUTO_TEST_CASE(cost_is_linear_in_tokens) {
  const AttentionShape shape{.heads = 3, .queries = 1024, .keys = 1024, .width = 32, .value_width = 16};
  const auto mechanism = make_mechanism("nystrom", {{"landmarks", "64"}});
  const Cost cost = mechanism->cost(shape);
  const Index m = 64, scores = 2 * 1024 * m * 32 + m * m * 32, values = 2 * 1024 * m * 16 + m * m * 16;
  BOOST_TEST(cost.forward_contractions.mul == 3 * (scores + 6 * 4 * m * m * m + values));
  BOOST_TEST(cost.attention_exp == 3 * (2 * 1024 * m + m * m));
  BOOST_TEST(mechanism->memory(shape).saved == 3 * (2 * 1024 * m + 2 * m * m + 2 * m * 32 + 2 * m * 16));
}

BOOST_AUTO_TEST_CASE(bad_options) {
  const AttentionShape shape{.heads = 1,
                             .queries = 13,
                             .keys = 13,
                             .width = 2,
                             .value_width = 2,
                             .grid_height = 3,
                             .grid_width = 4,
                             .class_token = true};
  BOOST_TEST(refusal("nystrom", {}, shape) ==
             "[nystrom] landmarks is 0, ratio is 0; set exactly one of them, such as attention.landmarks=49");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "4"}, {"ratio", "1"}}, shape) ==
             "[nystrom] landmarks is 4, ratio is 1; set exactly one of them, such as attention.landmarks=49");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "4"}}, shape) ==
             "[nystrom] landmarks is 4; it must divide the 13 queries and 13 keys");
  BOOST_TEST(refusal("nystrom", {{"ratio", "2"}}, shape) ==
             "[nystrom] ratio is 2; it must divide both sides of the image grid, 3 x 4");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "13"}, {"iterations", "65"}}, shape) ==
             "[nystrom] iterations is 65; expected 0 to 64");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "-1"}}, shape) == "[nystrom] landmarks is -1; expected 1 or more");
  BOOST_TEST(refusal("nystrom", {{"ratio", "-1"}}, shape) == "[nystrom] ratio is -1; expected 1 or more");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "13"}, {"iterations", "-1"}}, shape) ==
             "[nystrom] iterations is -1; expected 0 to 64");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "13"}, {"iterations", "64"}}, shape) == "");
  for (const auto& [queries, keys] : {std::pair<Index, Index>{12, 13}, {13, 12}})
    BOOST_TEST(refusal("nystrom", {{"landmarks", "4"}}, {.queries = queries, .keys = keys}) ==
               "[nystrom] landmarks is 4; it must divide the " + std::to_string(queries) + " queries and " +
                   std::to_string(keys) + " keys");
  for (const auto& [height, refused] : {std::pair<Index, bool>{128, false}, {129, true}}) {
    const AttentionShape large{
        .queries = 4 * 128 * height, .keys = 4 * 128 * height, .grid_height = 2 * height, .grid_width = 2 * 128};
    BOOST_TEST(refusal("nystrom", {{"ratio", "2"}}, large) ==
               (refused ? "[nystrom] there are 16512 landmarks; expected at most 16384" : ""));
  }
  BOOST_TEST(refusal("nystrom", {{"landmarks", "16385"}}, {.queries = 16385, .keys = 16385}) ==
             "[nystrom] there are 16385 landmarks; expected at most 16384");
  BOOST_TEST(refusal("nystrom", {{"landmarks", "5"}}, {.queries = 13, .keys = 13, .longest = 20}) == "");
  BOOST_TEST(refusal("nystrom", {{"ratio", "2"}}, {.queries = 4, .keys = 4}) ==
             "[nystrom] ratio is 2; 4 queries and 4 keys do not form an image grid of 0 x 0");
}

BOOST_AUTO_TEST_SUITE_END()
