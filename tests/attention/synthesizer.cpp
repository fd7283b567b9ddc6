// Synthesizer compared with hand-calculated values and its definition. tests/checks/cases.cpp checks gradients, costs
// and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include "heed/attention/capabilities/preparation.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

std::function<bool(Index, Index)> sees(bool causal) {
  return [causal](Index i, Index j) { return !causal || j <= i; };
}

MapDefinition dense(bool causal) {
  return [causal](const DefinitionHead& x) {
    const Tensor<double>&w1 = x.x.at("w1"), &b1 = x.x.at("b1"), &w2 = x.x.at("w2"), &b2 = x.x.at("b2");
    const Index columns = w2.shape()[1];
    SlowMatrix scores(x.N(), x.M());
    for (Index i = 0; i < x.N(); ++i) {
      for (Index j = 0; j < x.M(); ++j) scores(i, j) = b2[j];
      for (Index a = 0; a < x.d(); ++a) {
        double hidden = b1[a];
        for (Index c = 0; c < x.d(); ++c) hidden += x.q(i, c) * w1[c * x.d() + a];
        for (Index j = 0; j < x.M() && hidden > 0; ++j) scores(i, j) += hidden * w2[a * columns + j];
      }
    }
    return slow_softmax(scores, sees(causal));
  };
}

MapDefinition random(bool causal) {
  return [causal](const DefinitionHead& x) {
    SlowMatrix scores(x.M(), x.M());
    const Tensor<double>& logits = x.x.at("logits");
    const Index longest = logits.shape()[1];
    for (Index i = 0; i < x.M(); ++i)
      for (Index j = 0; j < x.M(); ++j) scores(i, j) = logits[(x.head * longest + i) * longest + j];
    return slow_softmax(scores, sees(causal));
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(synthesizer)

// Y = relu(2 q - 1) = (1, 0) for q = (1, 0), S = Y (ln 2, 0) + (0, ln 3): the rows of A are proportional to (2, 3) and
// (1, 3), v = (5, 10): out = (8, 35/4). dS = A (v - out) = (-6/5, 6/5), (-15/16, 15/16). db2 is the sum of these rows
// and dw2 the first one; dY = dS w2 is -6/5 ln 2 in the first row; in the second, relu makes it 0. Then
// dq = 2 dY, dw1 = q dY, db1 = dY.
BOOST_AUTO_TEST_CASE(dense_by_hand) {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0), dY = -1.2 * ln2;
  Tensors x{{"q", tokens(2, 1, {1, 0})}, {"v", tokens(2, 1, {5, 10})}};
  x["w1"] = Tensor<double>(Shape{1, 1}, {2});
  x["b1"] = Tensor<double>(Shape{1}, {-1});
  x["w2"] = Tensor<double>(Shape{1, 2}, {ln2, 0});
  x["b2"] = Tensor<double>(Shape{2}, {0, ln3});
  const Tensors r = run_mechanism<double>("synthesizer", {}, x);
  check_near(r.at("map"), {0.4, 0.6, 0.25, 0.75});
  check_near(r.at("out"), {8, 8.75});
  check_near(r.at("dv"), {0.65, 1.35});
  check_near(r.at("db2"), {-1.2 - 0.9375, 1.2 + 0.9375});
  check_near(r.at("dw2"), {-1.2, 1.2});
  check_near(r.at("dq"), {2 * dY, 0});
  check_near(r.at("dw1"), {dY});
  check_near(r.at("db1"), {dY});
}

// The rows of A are proportional to (1, 3) and (1, 1); with causal=true, the first is (1, 0).
BOOST_AUTO_TEST_CASE(random_by_hand) {
  Tensors x{{"v", tokens(2, 1, {4, 8})}};
  x["logits"] = Tensor<double>(Shape{1, 2, 2}, {0, std::log(3.0), 7, 7});
  const Tensors all = run_mechanism<double>("synthesizer", {{"kind", "random"}}, x);
  check_near(all.at("map"), {0.25, 0.75, 0.5, 0.5});
  check_near(all.at("out"), {7, 6});
  check_near(all.at("dv"), {0.75, 1.25});
  check_near(all.at("dlogits"), {-0.75, 0.75, -1, 1});
  const Tensors causal = run_mechanism<double>("synthesizer", {{"kind", "random"}, {"causal", "true"}}, x);
  check_near(causal.at("map"), {1, 0, 0.5, 0.5});
  check_near(causal.at("out"), {4, 6});
  check_near(causal.at("dlogits"), {0, 0, -1, 1});
}

// Several blocks of queries; different numbers of queries and keys. If causal, no query attends to some of the keys.
BOOST_AUTO_TEST_CASE(by_definition) {
  struct Sizes {
    Index N, M;
  };
  for (const char* causal : {"false", "true"}) {
    for (const auto& [N, M] : {Sizes{1, 1}, {150, 150}, {9, 20}, {110, 9}})
      check_definition("synthesizer", {{"causal", causal}},
                       {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
                        {"v", random_tensor({2, 2, M, 3}, 3)},
                        {"w1", random_tensor({4, 4}, 5)},
                        {"b1", random_tensor({4}, 6)},
                        {"w2", random_tensor({4, M}, 7)},
                        {"b2", random_tensor({M}, 8)},
                        {"dout", random_tensor({2, 2, N, 3}, 4)}},
                       dense(*causal == 't'));
    // The last map is too large to be prepared.
    for (const Index N : {1, 20, 130, 730})
      check_definition("synthesizer", {{"kind", "random"}, {"causal", causal}},
                       {{"v", random_tensor({2, 2, N, 3}, 3)},
                        {"logits", random_tensor({2, N, N}, 5, 2)},
                        {"dout", random_tensor({2, 2, N, 3}, 4)}},
                       random(*causal == 't'));
  }
}

// A sequence shorter than the longest uses the first columns of w2, the first elements of b2, and the first rows and
// columns of the logits. If any sequence of a batch is shorter, one of the full length does not use a prepared map
// either.
BOOST_AUTO_TEST_CASE(shorter_sequences_by_definition) {
  constexpr Index longest = 11;
  for (const char* causal : {"false", "true"})
    for (const Index N : {1, 6, 11}) {
      const Tensor<double> v = random_tensor({2, 2, N, 3}, 3), dout = random_tensor({2, 2, N, 3}, 4);
      check_definition("synthesizer", {{"causal", causal}},
                       {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
                        {"v", v},
                        {"w1", random_tensor({4, 4}, 5)},
                        {"b1", random_tensor({4}, 6)},
                        {"w2", random_tensor({4, longest}, 7)},
                        {"b2", random_tensor({longest}, 8)},
                        {"dout", dout}},
                       dense(*causal == 't'), {.longest = longest, .whole = false});
      check_definition("synthesizer", {{"kind", "random"}, {"causal", causal}},
                       {{"v", v}, {"logits", random_tensor({2, longest, longest}, 5, 2)}, {"dout", dout}},
                       random(*causal == 't'), {.longest = longest, .whole = false});
    }
}

BOOST_AUTO_TEST_CASE(costs_and_memory) {
  const AttentionShape shape{.heads = 3, .queries = 256, .keys = 256, .width = 16, .value_width = 8};
  const auto dense = make_mechanism("synthesizer", {}), random = make_mechanism("synthesizer", {{"kind", "random"}});
  BOOST_TEST(dense->cost(shape).forward_contractions.mul == 3 * (256 * 16 * 16 + 256 * 256 * 16 + 256 * 256 * 8));
  BOOST_TEST(dense->cost(shape).attention_exp == 3 * 256 * 256);
  BOOST_TEST(dense->memory(shape).prepared == 0);
  BOOST_TEST(dense->memory(shape).saved == 3 * 256 * (16 + 2));
  BOOST_TEST(random->cost(shape).forward_contractions.mul == 3 * 256 * 256 * 8);
  BOOST_TEST(preparation_cost(*random, shape).attention_exp == 3 * 256 * 256);
  BOOST_TEST(random->memory(shape).prepared == 3 * 256 * 256);
  BOOST_TEST(random->memory(shape).saved == 0);
  const AttentionShape large{.heads = 3, .queries = 1024, .keys = 1024, .value_width = 8};
  BOOST_TEST(random->memory(large).prepared == 0);
  BOOST_TEST(random->memory(large).scratch < 3 * 1024 * 1024);
}

BOOST_AUTO_TEST_CASE(bad_options) {
  BOOST_TEST(refusal("synthesizer", {{"kind", "random"}}, {.queries = 4, .keys = 5}) ==
             "[synthesizer] there are 4 queries and 5 keys; kind=random requires equal numbers");
  BOOST_TEST(refusal("synthesizer", {{"kind", "factorized"}}).starts_with("[synthesizer] kind is 'factorized'"));
}

BOOST_AUTO_TEST_SUITE_END()
