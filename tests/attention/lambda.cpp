// Lambda layers compared with hand-calculated values; in a model, all query heads share one head of keys and values.
// tests/checks/cases.cpp checks gradients, costs and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include "heed/config/experiment.h"
#include "heed/nn/vit.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

/// Returns operands with two heads of queries, two tokens, one channel: q = (1, 2) and (3, -1), k = (0, ln 3),
/// v = (4, 8).
Tensors operands() {
  return {{"q", Tensor<double>(Shape{1, 2, 2, 1}, {1, 2, 3, -1})},
          {"k", Tensor<double>(Shape{1, 1, 2, 1}, {0, std::log(3.0)})},
          {"v", Tensor<double>(Shape{1, 1, 2, 1}, {4, 8})}};
}

/// Returns the attention map q_n . (ks_m + E_nm), with ks the softmax of each channel of k over the tokens.
SlowMatrix definition(const DefinitionHead& x) {
  SlowMatrix channels(x.d(), x.M());
  for (Index c = 0; c < x.d(); ++c)
    for (Index m = 0; m < x.M(); ++m) channels(c, m) = x.k(m, c);
  const SlowMatrix ks = slow_softmax(channels);
  const bool positions = x.x.contains("e");
  SlowMatrix map(x.N(), x.M());
  for (Index n = 0; n < x.N(); ++n)
    for (Index m = 0; m < x.M(); ++m)
      for (Index c = 0; c < x.d(); ++c)
        map(n, m) +=
            x.q(n, c) * (ks(c, m) + (positions ? x.x.at("e")[(n * x.x.at("e").shape()[1] + m) * x.d() + c] : 0));
  return map;
}

/// Returns operands of two images, with three heads of queries, keys of 4 channels and values of 5.
Tensors random_operands(Index N, Index M) {
  return {{"q", random_tensor({2, 3, N, 4}, 1)},
          {"k", random_tensor({2, 1, M, 4}, 2, 2)},
          {"v", random_tensor({2, 1, M, 5}, 3)},
          {"dout", random_tensor({2, 3, N, 5}, 4)}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(lambda)

BOOST_AUTO_TEST_CASE(by_definition) {
  for (const Index N : {1, 7, 33}) {
    Tensors x = random_operands(N, N);
    x["e"] = random_tensor({N, N, 4}, 5);
    check_definition("lambda", {}, x, definition);
  }
  for (const Index N : {1, 9, 40})
    check_definition("lambda", {{"positions", "false"}}, random_operands(N, 11), definition);
}

// A sequence shorter than the longest uses the first rows and columns of e.
BOOST_AUTO_TEST_CASE(shorter_sequences_by_definition) {
  constexpr Index longest = 11;
  for (const Index N : {1, 6, 10}) {
    Tensors x = random_operands(N, N);
    x["e"] = random_tensor({longest, longest, 4}, 5);
    check_definition("lambda", {}, x, definition, {.longest = longest, .whole = false});
  }
}

// Zero position embeddings leave only the content lambda.
BOOST_AUTO_TEST_CASE(without_positions) {
  const Tensors x = random_operands(9, 9);
  Tensors with = x;
  with["e"] = Tensor<double>(Shape{9, 9, 4});
  Tensors zero = run_mechanism<double>("lambda", {}, with);
  zero.erase("de");
  check_same(zero, run_mechanism<double>("lambda", {{"positions", "false"}}, x), 1e-14, "E = 0");
}

// ks = (1/4, 3/4), L = 1 + 6 = 7, and out = 7 q. With dout = 1: dL = 1 + 2 + 3 - 1 = 5, dv = 5 ks, dks = 5 v = (20,
// 40), whose mean weighted by ks is 35: dk = ks (dks - 35).
BOOST_AUTO_TEST_CASE(content_by_hand) {
  const Tensors results = run_mechanism<double>("lambda", {{"positions", "false"}}, operands());
  check_near(results.at("out"), {7, 14, 21, -7});
  check_near(results.at("dq"), {7, 7, 7, 7});
  check_near(results.at("dv"), {1.25, 3.75});
  check_near(results.at("dk"), {-3.75, 3.75});
  check_near(results.at("map"), {0.25, 0.75, 0.5, 1.5, 0.75, 2.25, -0.25, -0.75});
}

// e = ((1, 2), (3, -1)): lambda = 7 + (4 + 16, 12 - 8) = (27, 11). dlambda is the sum of both heads' q: 4 and 1.
BOOST_AUTO_TEST_CASE(positions_by_hand) {
  Tensors x = operands();
  x["e"] = Tensor<double>(Shape{2, 2, 1}, {1, 2, 3, -1});
  const Tensors results = run_mechanism<double>("lambda", {}, x);
  check_near(results.at("out"), {27, 22, 81, -11});
  check_near(results.at("dq"), {27, 11, 27, 11});
  check_near(results.at("de"), {4 * 4, 4 * 8, 4, 8});
  check_near(results.at("dv"), {1.25 + 4 * 1 + 3, 3.75 + 4 * 2 - 1});
  check_near(results.at("dk"), {-3.75, 3.75});
  check_near(results.at("map"), {1.25, 2.75, 2 * 3.25, 2 * -0.25, 3.75, 8.25, -3.25, 0.25});
}

// All keys and values are shared between heads: in a model with 4 heads the projection has 4 parts of q, one of k and
// one of v. The adder layer has a norm for each of q, k and v, as wide as its parts together; the norms of qk_norm are
// as wide as one part.
BOOST_AUTO_TEST_CASE(one_head_of_keys_in_a_model) {
  ModelConfig model;
  model.image = 4, model.channels = 1, model.patch = 2, model.dim = 12, model.depth = 1, model.heads = 4;
  model.hidden = 5, model.classes = 3, model.qk_norm = true, model.linear = {"adder"};
  AttentionConfig attention;
  attention.mechanism = {"lambda"};
  attention.options["key_dim"] = {"5", "--set"};
  const VisionTransformer vit(model, attention);
  const auto shape = [&](const std::string& name) {
    const ParameterId id = vit.parameters().find("blocks.0.attn." + name);
    BOOST_REQUIRE_MESSAGE(id >= 0, name);
    return vit.parameters()[id].shape;
  };
  BOOST_TEST((shape("qkv.weight") == Shape{4 * 5 + 5 + 3, 12}));
  BOOST_TEST((shape("q_ln.weight") == Shape{20}));
  BOOST_TEST((shape("k_ln.weight") == Shape{5}));
  BOOST_TEST((shape("v_ln.weight") == Shape{3}));
  BOOST_TEST((shape("q_norm.weight") == Shape{5}));
  BOOST_TEST((shape("k_norm.weight") == Shape{5}));
  BOOST_TEST((shape("proj.weight") == Shape{12, 12}));
  BOOST_TEST((shape("e") == Shape{5, 5, 5}));
}

BOOST_AUTO_TEST_CASE(what_papers_count) {
  const AttentionShape shape{.heads = 4, .queries = 50, .keys = 50, .width = 16, .value_width = 32};
  const auto products = [&](const char* positions) {
    return make_mechanism("lambda", {{"key_dim", "16"}, {"positions", positions}})
        ->cost(shape)
        .forward_contractions.mul;
  };
  BOOST_TEST(products("true") == 50 * 16 * 32 + 50 * 50 * 16 * 32 + 4 * 50 * 16 * 32);
  BOOST_TEST(products("false") == 50 * 16 * 32 + 4 * 50 * 16 * 32);
}

BOOST_AUTO_TEST_CASE(refused) {
  const AttentionShape shape{.queries = 5, .keys = 4, .width = 3, .value_width = 3};
  BOOST_TEST(refusal("lambda", {}, shape) == "[lambda] key_dim is not set; expected 1 to 65536");
  for (const std::string key_dim : {"0", "65537"})
    BOOST_TEST(refusal("lambda", {{"key_dim", key_dim}}, shape) ==
               "[lambda] key_dim is " + key_dim + "; expected 1 to 65536");
  BOOST_TEST(refusal("lambda", {{"key_dim", "65536"}}, {.queries = 5, .keys = 5, .width = 65536}) == "");
  BOOST_TEST(refusal("lambda", {{"key_dim", "4"}}, shape) == "[lambda] q has 3 channels; expected key_dim, 4");
  BOOST_TEST(refusal("lambda", {{"key_dim", "3"}}, shape) ==
             "[lambda] there are 5 queries and 4 keys; positions=true requires equal numbers");
  BOOST_TEST(refusal("lambda", {{"key_dim", "3"}, {"positions", "false"}}, shape) == "");
}

BOOST_AUTO_TEST_SUITE_END()
