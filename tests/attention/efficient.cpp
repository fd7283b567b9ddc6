// Efficient attention compared with hand-calculated values and its definition. tests/checks/cases.cpp checks gradients,
// costs and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

SlowMatrix definition(const DefinitionHead& x) {
  SlowMatrix q(x.N(), x.d()), k(x.d(), x.M());
  for (Index c = 0; c < x.d(); ++c) {
    for (Index i = 0; i < x.N(); ++i) q(i, c) = x.q(i, c);
    for (Index j = 0; j < x.M(); ++j) k(c, j) = x.k(j, c);
  }
  return slow_softmax(q) * slow_softmax(k);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(efficient)

// The rows of qn are (1/2, 1/2) and (3/4, 1/4), the columns of kn (1/4, 3/4) and (1/2, 1/2); v = (4, 8):
// S = (7, 6), out = (13/2, 27/4). dout = (1, 1): dS = (5/4, 3/4), dv = kn dS = (11/16, 21/16).
// dqn = S in each row: dq = qn (S - qn S) = (1/4, -1/4) and (3/16, -3/16).
// dkn = v dS^T = (5, 3) and (10, 6); with <kn, dkn> = 35/4 and 9/2 by columns
// dk = kn (dkn - <kn, dkn>) = (-15/16, -3/4) and (15/16, 3/4).
BOOST_AUTO_TEST_CASE(by_hand) {
  const double ln3 = std::log(3.0);
  const Tensors r = run_mechanism<double>(
      "efficient", {},
      {{"q", tokens(2, 2, {5, 5, ln3, 0})}, {"k", tokens(2, 2, {0, 7, ln3, 7})}, {"v", tokens(2, 1, {4, 8})}});
  check_near(r.at("out"), {6.5, 6.75});
  check_near(r.at("map"), {3.0 / 8, 5.0 / 8, 5.0 / 16, 11.0 / 16});
  check_near(r.at("dv"), {11.0 / 16, 21.0 / 16});
  check_near(r.at("dq"), {0.25, -0.25, 3.0 / 16, -3.0 / 16});
  check_near(r.at("dk"), {-15.0 / 16, -0.75, 15.0 / 16, 0.75});
}

BOOST_AUTO_TEST_CASE(by_definition) {
  struct Sizes {
    Index N, M;
  };
  for (const auto& [N, M] : {Sizes{1, 1}, {50, 50}, {9, 70}, {70, 9}, {600, 300}})
    check_definition("efficient", {},
                     {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
                      {"k", random_tensor({2, 2, M, 4}, 2, 2)},
                      {"v", random_tensor({2, 2, M, 3}, 3)},
                      {"dout", random_tensor({2, 2, N, 3}, 4)}},
                     definition);
}

BOOST_AUTO_TEST_CASE(extreme_numbers) {
  const Tensors x{
      {"q", tokens(2, 2, {1e4, -1e4, 0, 0})}, {"k", tokens(2, 2, {1e4, 0, -1e4, 0})}, {"v", tokens(2, 1, {3, 5})}};
  for (const Tensors& r : {run_mechanism<double>("efficient", {}, x), run_mechanism<float>("efficient", {}, x)}) {
    check_near(r.at("out"), {3, 3.5}, 1e-6);
    check_near(r.at("dk"), {0, -0.25, 0, 0.25}, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(cost_is_linear_in_tokens) {
  const AttentionShape shape{.heads = 3, .queries = 1024, .keys = 1024, .width = 64, .value_width = 32};
  const auto mechanism = make_mechanism("efficient", {});
  const Cost cost = mechanism->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * 2 * 1024 * 64 * 32);
  BOOST_TEST(cost.forward_contractions.add == 3 * 2 * 1024 * 64 * 32);
  BOOST_TEST(cost.backward_contractions.mul == 2 * cost.forward_contractions.mul);
  BOOST_TEST(cost.attention_exp == 3 * 2 * 1024 * 64);
  BOOST_TEST(mechanism->memory(shape).saved == 3 * (1024 * 64 + 64 * 32));  // kn, S
}

BOOST_AUTO_TEST_SUITE_END()
