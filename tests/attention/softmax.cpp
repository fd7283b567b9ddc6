// Softmax attention compared with hand-calculated values and its definition, and for extreme scores.
// tests/checks/cases.cpp checks gradients, costs and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

BOOST_AUTO_TEST_SUITE(softmax_attention)

// One channel: S = q k^T. q = (ln 2, 0), k = (1, 0), v = (3, 9): the rows of A are (2/3, 1/3) and (1/2, 1/2),
// out = (5, 6). dout = (1, 1): dv = (2/3 + 1/2, 1/3 + 1/2). dA = (3, 9) in each row, so
// dS = A (dA - sum A dA) = (2/3 (3 - 5), 1/3 (9 - 5)), (1/2 (3 - 6), 1/2 (9 - 6)); dq = dS k, dk = dS^T q.
BOOST_AUTO_TEST_CASE(by_hand) {
  const double ln2 = std::log(2.0);
  const Tensors r = run_mechanism<double>(
      "softmax", {}, {{"q", tokens(2, 1, {ln2, 0})}, {"k", tokens(2, 1, {1, 0})}, {"v", tokens(2, 1, {3, 9})}});
  check_near(r.at("map"), {2.0 / 3, 1.0 / 3, 0.5, 0.5});
  check_near(r.at("out"), {5, 6});
  check_near(r.at("dv"), {7.0 / 6, 5.0 / 6});
  check_near(r.at("dq"), {-4.0 / 3, -1.5});
  check_near(r.at("dk"), {-4.0 / 3 * ln2, 4.0 / 3 * ln2});
}

// The first query attends to the first key only, whatever the second is.
BOOST_AUTO_TEST_CASE(causal_by_hand) {
  const double ln2 = std::log(2.0);
  const Tensors r = run_mechanism<double>(
      "softmax", {{"causal", "true"}},
      {{"q", tokens(2, 1, {ln2, ln2})}, {"k", tokens(2, 1, {1, 0})}, {"v", tokens(2, 1, {3, 9})}});
  check_near(r.at("map"), {1, 0, 2.0 / 3, 1.0 / 3});
  check_near(r.at("out"), {3, 5});
  check_near(r.at("dq"), {0, -4.0 / 3});
  check_near(r.at("dv"), {5.0 / 3, 1.0 / 3});
}

// Keys that no query attends to get a zero gradient.
BOOST_AUTO_TEST_CASE(causal_with_more_keys_than_queries) {
  const Tensors r =
      run_mechanism<double>("softmax", {{"causal", "true"}},
                            {{"q", tokens(1, 1, {1})}, {"k", tokens(3, 1, {3, 4, 5})}, {"v", tokens(3, 1, {6, 7, 8})}});
  check_near(r.at("out"), {6});
  check_near(r.at("dk"), {0, 0, 0});
  check_near(r.at("dv"), {1, 0, 0});
}

/// Computes out = softmax(q k^T / sqrt(d)) v directly, separately for each image and head.
Tensor<double> by_definition(const Tensors& x, bool causal) {
  const Tensor<double>&q = x.at("q"), &k = x.at("k"), &v = x.at("v");
  const Index heads = q.shape()[0] * q.shape()[1], N = q.shape()[2], M = k.shape()[2], d = q.shape()[3],
              e = v.shape()[3];
  Tensor<double> out(Shape{q.shape()[0], q.shape()[1], N, e});
  for (Index h = 0; h < heads; ++h)
    for (Index i = 0; i < N; ++i) {
      double sum = 0;
      for (Index j = 0; j < (causal ? std::min(M, i + 1) : M); ++j) {
        double score = 0;
        for (Index c = 0; c < d; ++c) score += q[(h * N + i) * d + c] * k[(h * M + j) * d + c];
        const double weight = std::exp(score / std::sqrt(static_cast<double>(d)));
        sum += weight;
        for (Index c = 0; c < e; ++c) out[(h * N + i) * e + c] += weight * v[(h * M + j) * e + c];
      }
      for (Index c = 0; c < e; ++c) out[(h * N + i) * e + c] /= sum;
    }
  return out;
}

// One or two blocks of queries (map_blocks.h), and values of a different width. Up to 20 tokens the map is saved.
BOOST_AUTO_TEST_CASE(blocks_of_queries_by_definition) {
  for (const char* causal : {"false", "true"})
    for (const Index N : {1, 5, 20, 21, 95, 96, 150}) {
      const Tensors x{{"q", random_tensor({2, 3, N, 4}, 1, 2)},
                      {"k", random_tensor({2, 3, N, 4}, 2, 2)},
                      {"v", random_tensor({2, 3, N, 6}, 3)},
                      {"dout", random_tensor({2, 3, N, 6}, 4)}};
      const std::string what = "N = " + std::to_string(N) + ", causal = " + causal;
      const Tensors exact = run_mechanism<double>("softmax", {{"causal", causal}}, x);
      check_same(exact, {{"out", by_definition(x, *causal == 't')}}, 1e-14, what);
      check_same(run_mechanism<float>("softmax", {{"causal", causal}}, x), exact, 2e-6, what);
    }
}

// Gradients compared with finite differences of the definition, for different numbers of queries and keys.
BOOST_AUTO_TEST_CASE(gradients_over_blocks_of_queries) {
  for (const bool causal : {false, true})
    for (const auto& [N, M] : {std::pair<Index, Index>{100, 110}, {110, 100}}) {
      const MapDefinition definition = [causal](const DefinitionHead& x) {
        SlowMatrix scores(x.N(), x.M());
        for (Index i = 0; i < x.N(); ++i)
          for (Index j = 0; j < x.M(); ++j)
            for (Index c = 0; c < x.d(); ++c)
              scores(i, j) += x.q(i, c) * x.k(j, c) / std::sqrt(static_cast<double>(x.d()));
        return slow_softmax(scores, [causal](Index i, Index j) { return !causal || j <= i; });
      };
      check_definition("softmax", {{"causal", causal ? "true" : "false"}},
                       {{"q", random_tensor({1, 2, N, 4}, 1, 2)},
                        {"k", random_tensor({1, 2, M, 4}, 2, 2)},
                        {"v", random_tensor({1, 2, M, 3}, 3)},
                        {"dout", random_tensor({1, 2, N, 3}, 4)}},
                       definition);
    }
}

// Rows of more than 832 keys of this width are split across blocks (map_blocks.h). Scores grow with the position of the
// key, so that each block has a larger maximum.
BOOST_AUTO_TEST_CASE(split_rows_by_definition) {
  for (const char* causal : {"false", "true"}) {
    const Index N = 1700;
    Tensors x{{"q", random_tensor({1, 2, N, 4}, 1, 2)},
              {"k", random_tensor({1, 2, N, 4}, 2, 2)},
              {"v", random_tensor({1, 2, N, 6}, 3)},
              {"dout", random_tensor({1, 2, N, 6}, 4)}};
    for (Index i = 0; i < 2 * N * 4; ++i) x.at("k")[i] *= 1 + static_cast<double>(i / 4 % N) / 300;
    const std::string what = std::string("causal = ") + causal;
    const Tensors exact = run_mechanism<double>("softmax", {{"causal", causal}}, x);
    check_same(exact, {{"out", by_definition(x, *causal == 't')}}, 1e-13, what);
    check_same(run_mechanism<float>("softmax", {{"causal", causal}}, x), exact, 4e-6, what);
  }
}

// Rows split across blocks, with more keys than queries and, if causal, also with fewer keys than queries.
BOOST_AUTO_TEST_CASE(split_rows_of_other_numbers_of_queries) {
  const MapDefinition definition = [](const DefinitionHead& x) {
    SlowMatrix scores(x.N(), x.M());
    for (Index i = 0; i < x.N(); ++i)
      for (Index j = 0; j < x.M(); ++j)
        for (Index c = 0; c < x.d(); ++c) scores(i, j) += x.q(i, c) * x.k(j, c) / 2;
    return slow_softmax(scores);
  };
  const auto operands = [](Index N, Index M) {
    return Tensors{{"q", random_tensor({1, 1, N, 4}, 1, 2)},
                   {"k", random_tensor({1, 1, M, 4}, 2, 2)},
                   {"v", random_tensor({1, 1, M, 3}, 3)},
                   {"dout", random_tensor({1, 1, N, 3}, 4)}};
  };
  check_definition("softmax", {}, operands(20, 1000), definition);
  for (const auto& [N, M] : {std::pair<Index, Index>{1000, 950}, {950, 1000}}) {
    const Tensors x = operands(N, M);
    check_same(run_mechanism<double>("softmax", {{"causal", "true"}}, x), {{"out", by_definition(x, true)}}, 1e-13,
               std::to_string(N) + " queries");
  }
}

// Scores of 1e4: the largest has weight 1, whatever the others are; nothing overflows.
BOOST_AUTO_TEST_CASE(extreme_scores) {
  const Tensors x{{"q", tokens(2, 1, {100, -100})}, {"k", tokens(2, 1, {100, -100})}, {"v", tokens(2, 1, {1, 2})}};
  for (const Tensors& r : {run_mechanism<double>("softmax", {}, x), run_mechanism<float>("softmax", {}, x)}) {
    check_near(r.at("out"), {1, 2});
    check_near(r.at("map"), {1, 0, 0, 1});
    check_near(r.at("dq"), {0, 0});
    check_near(r.at("dv"), {1, 1});
  }
}

/// Returns x times `factor`, padded with zero channels to `channels`.
Tensor<double> widened(const Tensor<double>& x, Index channels, double factor = 1) {
  const Shape& s = x.shape();
  Tensor<double> wide(Shape{s[0], s[1], s[2], channels});
  for (Index r = 0; r < s.rows(); ++r)
    for (Index c = 0; c < s[3]; ++c) wide[r * channels + c] = factor * x[r * s[3] + c];
  return wide;
}

// With enough channels, the backward pass splits the keys into parts, whether the map is saved or recomputed. The test
// adds zero channels to cause the split. The results must equal those without added channels, for which the backward
// pass processes all keys at once.
BOOST_AUTO_TEST_CASE(parts_of_keys) {
  const Index d = 2;
  for (const auto& [N, channels] : {std::pair<Index, Index>{150, 700}, {700, 16}})
    for (const char* name : {"softmax", "pointwise"})
      for (const char* causal : {"false", "true"}) {
        // Compensates for the larger divisor of the scores, sqrt(channels).
        const double larger = std::sqrt(static_cast<double>(channels) / d);
        const auto random = [N = N](std::uint64_t seed) { return random_tensor({1, 1, N, d}, seed); };
        const Tensor<double> q = random(1), k = random(2), v = random(3), dout = random(4);
        const Tensors all =
            run_mechanism<double>(name, {{"causal", causal}}, {{"q", q}, {"k", k}, {"v", v}, {"dout", dout}});
        const Tensors parts = run_mechanism<double>(name, {{"causal", causal}},
                                                    {{"q", widened(q, channels, larger)},
                                                     {"k", widened(k, channels)},
                                                     {"v", widened(v, channels)},
                                                     {"dout", widened(dout, channels)}});
        for (const char* of : {"q", "k", "v"}) {
          const Tensor<double>&got = parts.at(std::string("d") + of), &expected = all.at(std::string("d") + of);
          for (Index r = 0; r < N; ++r)
            for (Index c = 0; c < d; ++c)
              BOOST_REQUIRE_SMALL(got[r * channels + c] * (*of == 'q' ? larger : 1) - expected[r * d + c], 1e-12);
        }
      }
}

// Gradients have the same bits for a saved and a recomputed map. The map is saved only if zero channels widen the
// values, which changes nothing else.
BOOST_AUTO_TEST_CASE(a_kept_map_is_the_one_that_is_made_again) {
  const Index N = 150, wide = 150;
  for (const char* causal : {"false", "true"}) {
    Tensors x{{"q", random_tensor({1, 2, N, 4}, 1, 2)},
              {"k", random_tensor({1, 2, N, 4}, 2, 2)},
              {"v", random_tensor({1, 2, N, 6}, 3)},
              {"dout", random_tensor({1, 2, N, 6}, 4)}};
    const Tensors again = run_mechanism<float>("softmax", {{"causal", causal}}, x);
    x["v"] = widened(x["v"], wide), x["dout"] = widened(x["dout"], wide);
    const Tensors kept = run_mechanism<float>("softmax", {{"causal", causal}}, x);
    check_same(kept, {{"dq", again.at("dq")}, {"dk", again.at("dk")}, {"dv", widened(again.at("dv"), wide)}}, 0,
               causal);
  }
}

// Small maps are saved, up to the size of q, k, v and out together. Otherwise two values per row are saved, and two
// blocks of the map are computed at a time.
BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  const AttentionShape shape{.heads = 2, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
  const AttentionMemorySize size = make_mechanism("softmax", {})->memory(shape);
  BOOST_TEST(size.saved == 2 * 2 * 4096);
  BOOST_TEST(size.scratch == 2 * 64 * 640 + 4096);  // A, dA for part of the keys, D
  BOOST_TEST(size.prepared == 0);
  const auto scratch = [](Index tokens) {
    return make_mechanism("softmax", {})
        ->memory({.heads = 2, .queries = tokens, .keys = tokens, .width = 16, .value_width = 16})
        .scratch;
  };
  BOOST_TEST(scratch(640) == 2 * 64 * 640);        // rows that are not split need no D
  BOOST_TEST(scratch(641) == 2 * 65 * 640 + 641);  // ten blocks of at most 65 queries
  const auto saved = [](Index tokens) {
    return make_mechanism("softmax", {})
        ->memory({.heads = 2, .queries = tokens, .keys = tokens, .width = 16, .value_width = 16})
        .saved;
  };
  BOOST_TEST(saved(50) == 2 * 50 * 64);  // rows start at cache lines
  BOOST_TEST(saved(64) == 2 * 64 * 64);
  BOOST_TEST(saved(65) == 2 * 65 * 2);
}

BOOST_AUTO_TEST_CASE(cost_of_deit_tiny) {
  const AttentionShape shape{.heads = 3, .queries = 197, .keys = 197, .width = 64, .value_width = 64};
  const Cost cost = make_mechanism("softmax", {})->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 2 * 3 * 197 * 197 * 64);
  BOOST_TEST(cost.backward_contractions.mul == 2 * cost.forward_contractions.mul);
  BOOST_TEST(cost.attention_exp == 3 * 197 * 197);
}

BOOST_AUTO_TEST_SUITE_END()
