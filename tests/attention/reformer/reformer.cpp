// Reformer compared with its definition, round by round and pair by pair. tests/checks/cases.cpp checks gradients,
// costs and agreement of float with double at small shapes for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace heed;

namespace {

struct Sizes {
  Index N, d, e, rounds, buckets, chunk;
};

Tensors operands(const Sizes& s) {
  return {{"q", random_tensor({2, 2, s.N, s.d}, 1, 2)},
          {"v", random_tensor({2, 2, s.N, s.e}, 3)},
          {"rotations", random_tensor({s.rounds, s.d, s.buckets / 2}, 4)},
          {"dout", random_tensor({2, 2, s.N, s.e}, 5)}};
}

OptionValues options(const Sizes& s) { return {{"chunk", std::to_string(s.chunk)}}; }

/// Returns the tokens of round r in the order of their buckets.
std::vector<Index> order_of(const DefinitionHead& x, Index r) {
  const Tensor<double>& rotations = x.x.at("rotations");
  const Index half = rotations.shape()[2];
  std::vector<Index> buckets, order(static_cast<std::size_t>(x.N()));
  for (Index t = 0; t < x.N(); ++t) {
    std::vector<double> u;
    for (Index b = 0; b < half; ++b) {
      double sum = 0;
      for (Index c = 0; c < x.d(); ++c) sum += x.q(t, c) * rotations[(r * x.d() + c) * half + b];
      u.push_back(sum);
    }
    for (Index b = 0; b < half; ++b) u.push_back(-u[static_cast<std::size_t>(b)]);
    buckets.push_back(std::max_element(u.begin(), u.end()) - u.begin());
  }
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    return buckets[static_cast<std::size_t>(a)] < buckets[static_cast<std::size_t>(b)];
  });
  return order;
}

/// Returns the attention map: one softmax over the tokens that a token attends to in all rounds; a token that occurs
/// several times counts several times.
MapDefinition definition(Index chunk) {
  return [chunk](const DefinitionHead& x) {
    const auto score = [&](Index i, Index j) {
      if (i == j) return -5e4;
      double dot = 0, square = 0;
      for (Index c = 0; c < x.d(); ++c) dot += x.q(i, c) * x.q(j, c), square += x.q(j, c) * x.q(j, c);
      return dot / std::max(std::sqrt(square), 1e-12) / std::sqrt(static_cast<double>(x.d()));
    };
    const Index N = x.N(), rounds = x.x.at("rotations").shape()[0];
    std::vector<std::vector<Index>> seen(static_cast<std::size_t>(N));
    for (Index r = 0; r < rounds; ++r) {
      const std::vector<Index> order = order_of(x, r);
      for (Index p = 0; p < N; ++p) {
        const Index first = (p / chunk - 1) * chunk;
        for (Index j = first; j < first + 2 * chunk; ++j)
          seen[static_cast<std::size_t>(order[static_cast<std::size_t>(p)])].push_back(
              order[static_cast<std::size_t>((j + N) % N)]);
      }
    }
    SlowMatrix map(N, N);
    for (Index i = 0; i < N; ++i) {
      const std::vector<Index>& keys = seen[static_cast<std::size_t>(i)];
      double largest = -1e300, sum = 0;
      for (const Index j : keys) largest = std::max(largest, score(i, j));
      for (const Index j : keys) sum += std::exp(score(i, j) - largest);
      for (const Index j : keys) map(i, j) += std::exp(score(i, j) - largest) / sum;
    }
    return map;
  };
}

const std::vector<Sizes> all_sizes{
    {24, 3, 2, 2, 6, 4}, {24, 3, 2, 3, 2, 12}, {20, 4, 3, 1, 4, 20}, {21, 2, 3, 4, 8, 1}, {96, 3, 2, 2, 8, 32}};

}  // namespace

BOOST_AUTO_TEST_SUITE(reformer)

BOOST_AUTO_TEST_CASE(by_definition) {
  for (const Sizes& s : all_sizes) check_definition("reformer", options(s), operands(s), definition(s.chunk));
}

// Two tokens in the same direction: each attends only to the other, since its weight on itself is e^-50000.
BOOST_AUTO_TEST_CASE(a_token_sees_itself_only_if_nothing_else) {
  const Tensor<double> rotations(Shape{1, 1, 1}, {1});
  const Tensors two =
      run_mechanism<double>("reformer", {{"chunk", "2"}},
                            {{"q", tokens(2, 1, {1, 3})}, {"v", tokens(2, 1, {5, 7})}, {"rotations", rotations}});
  check_near(two.at("out"), {7, 5});
  // The map is one-hot in each row, so the gradients of the scores are zero.
  check_near(two.at("dq"), {0, 0});
}

// A zero token has the key 0; its gradient, that of a division by 1e-12, is finite.
BOOST_AUTO_TEST_CASE(a_token_of_zeros) {
  const Sizes s{24, 3, 2, 2, 6, 4};
  Tensors x = operands(s);
  for (Index c = 0; c < s.d; ++c) x["q"][5 * s.d + c] = 0;
  const Tensors results = run_mechanism<double>("reformer", options(s), x);
  const SlowMatrix map = definition(s.chunk)({x, 0, 0});
  for (Index i = 0; i < s.N * s.N; ++i)
    BOOST_TEST(std::abs(results.at("map")[i] - map.values[static_cast<std::size_t>(i)]) < 1e-12);
  for (const double value : results.at("dq")) BOOST_TEST(std::isfinite(value));
}

// The squared lengths of these queries overflow float.
BOOST_AUTO_TEST_CASE(long_queries_have_directions) {
  const Sizes s{24, 3, 2, 2, 6, 4};
  Tensors x = operands(s);
  for (Index i = 0; i < x["q"].size(); ++i) x["q"][i] *= 1e20;
  const Tensors results = run_mechanism<float>("reformer", options(s), x);
  check_same(results, run_mechanism<double>("reformer", options(s), x), 1e-5, "1e20");
}

BOOST_AUTO_TEST_CASE(float_agrees_with_double) {
  for (const Sizes& s : {Sizes{256, 16, 16, 2, 16, 64}, Sizes{130, 8, 9, 3, 4, 13}}) {
    const Tensors x = operands(s);
    check_same(run_mechanism<float>("reformer", options(s), x), run_mechanism<double>("reformer", options(s), x), 1e-5,
               "float");
  }
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  const auto mechanism = make_mechanism("reformer", {{"rounds", "2"}, {"buckets", "32"}, {"chunk", "64"}});
  const AttentionShape shape{.heads = 1, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
  BOOST_TEST(mechanism->memory(shape).saved == 4096 * (1 + 16 + 2 * 4));
  BOOST_TEST(mechanism->memory(shape).scratch <= 4160 * (8 * 16 + 2 * 16 + 16 + 2) + 64 * 300);
}

BOOST_AUTO_TEST_CASE(what_papers_count) {
  const AttentionShape shape{.heads = 3, .queries = 60, .keys = 60, .width = 16, .value_width = 16};
  const Cost cost = make_mechanism("reformer", {{"rounds", "2"}, {"buckets", "6"}, {"chunk", "10"}})->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * 2 * (60 * 16 * 3 + 4 * 60 * 10 * 16));
}

BOOST_AUTO_TEST_CASE(refused) {
  const AttentionShape shape{.queries = 12, .keys = 12, .width = 3, .value_width = 3};
  const auto said = [&](const char* rounds, const char* buckets, const char* chunk) {
    return refusal("reformer", {{"rounds", rounds}, {"buckets", buckets}, {"chunk", chunk}}, shape);
  };
  BOOST_TEST(said("2", "4", "3") == "");
  BOOST_TEST(said("2", "0", "3") == "");
  BOOST_TEST(said("0", "4", "3") == "[reformer] rounds is 0; expected 1 to 1024");
  BOOST_TEST(said("2", "3", "3") == "[reformer] buckets is 3; expected an even number, or 0 for one per chunk");
  BOOST_TEST(said("2", "14", "3") == "[reformer] buckets is 14; expected at most 12, the number of tokens");
  BOOST_TEST(said("2", "4", "5") == "[reformer] chunk is 5; it must divide the 12 tokens");
  BOOST_TEST(said("2", "4", "0") == "[reformer] chunk is 0; it must divide the 12 tokens");
  BOOST_TEST(refusal("reformer", {{"rounds", "2"}, {"chunk", "3"}}, shape) ==
             "[reformer] buckets is not set; expected an even number, or 0 for one per chunk");
  BOOST_TEST(refusal("reformer", {{"buckets", "4"}, {"chunk", "3"}}, shape) ==
             "[reformer] rounds is not set; expected 1 to 1024");
  BOOST_TEST(refusal("reformer", {{"rounds", "2"}, {"buckets", "4"}}, shape) ==
             "[reformer] chunk is not set; it must divide the 12 tokens");
  BOOST_TEST(said("1025", "4", "3") == "[reformer] rounds is 1025; expected 1 to 1024");
  BOOST_TEST(said("1024", "12", "12") == "");
  const OptionValues one_per_chunk{{"rounds", "2"}, {"buckets", "0"}, {"chunk", "1"}};
  BOOST_TEST(refusal("reformer", one_per_chunk, {.queries = 1, .keys = 1}) ==
             "[reformer] buckets is 2; expected at most 1, the number of tokens");
  BOOST_TEST(refusal("reformer", one_per_chunk, {.queries = 4, .keys = 5}) ==
             "[reformer] there are 4 queries and 5 keys; the numbers must be equal, since keys are computed from q");
  BOOST_TEST(refusal("reformer", one_per_chunk, {.queries = 4, .keys = 4, .longest = 6}) ==
             "[reformer] a sequence has 4 tokens; expected 6, the full length, which is divided into chunks");
  BOOST_TEST(refusal("reformer", one_per_chunk, {.queries = 6, .keys = 6, .longest = 6}) == "");
}

BOOST_AUTO_TEST_SUITE_END()
