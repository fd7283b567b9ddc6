// Linformer compared with hand-calculated values and its definition. tests/checks/cases.cpp checks gradients, costs and
// agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

SlowMatrix definition(const DefinitionHead& x) {
  const Tensor<double>&e = x.x.at("e"), &f = x.x.at("f");
  const Index m = e.shape()[0], longest = e.shape()[1];
  SlowMatrix scores(x.N(), m), projection(m, x.M());
  for (Index l = 0; l < m; ++l)
    for (Index j = 0; j < x.M(); ++j) projection(l, j) = f[l * longest + j];
  for (Index i = 0; i < x.N(); ++i)
    for (Index l = 0; l < m; ++l)
      for (Index j = 0; j < x.M(); ++j)
        for (Index c = 0; c < x.d(); ++c)
          scores(i, l) += x.q(i, c) * e[l * longest + j] * x.k(j, c) / std::sqrt(static_cast<double>(x.d()));
  return slow_softmax(scores) * projection;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linformer)

// One channel; e = ((1, 1), (0, 1)), f = ((1, 0), (2, 2)), k = (-1, 1), v = (3, 6): kp = (0, 1), vp = (3, 18).
// q = (0, ln 2): the rows of A are (1/2, 1/2) and (1/3, 2/3), out = (21/2, 13), the rows of A f (3/2, 1), (5/3, 4/3).
// dout = (1, 1): dvp = (5/6, 7/6), dv = f^T dvp = (19/6, 7/3), df = dvp v^T.
// dS = A (vp - A vp) = (-15/4, 15/4), (-10/3, 10/3): dq = (15/4, 10/3), dkp = (-10/3, 10/3) ln 2, dk = e^T dkp.
BOOST_AUTO_TEST_CASE(by_hand) {
  const double ln2 = std::log(2.0);
  Tensors x{{"q", tokens(2, 1, {0, ln2})}, {"k", tokens(2, 1, {-1, 1})}, {"v", tokens(2, 1, {3, 6})}};
  x["e"] = Tensor<double>(Shape{2, 2}, {1, 1, 0, 1});
  x["f"] = Tensor<double>(Shape{2, 2}, {1, 0, 2, 2});
  const Tensors r = run_mechanism<double>("linformer", {}, x);
  check_near(r.at("out"), {10.5, 13});
  check_near(r.at("map"), {1.5, 1, 5.0 / 3, 4.0 / 3});
  check_near(r.at("dv"), {19.0 / 6, 7.0 / 3});
  check_near(r.at("df"), {2.5, 5, 3.5, 7});
  check_near(r.at("dq"), {3.75, 10.0 / 3});
  check_near(r.at("dk"), {-10.0 / 3 * ln2, 0});
  check_near(r.at("de"), {10.0 / 3 * ln2, -10.0 / 3 * ln2, -10.0 / 3 * ln2, 10.0 / 3 * ln2});
}

BOOST_AUTO_TEST_CASE(by_definition) {
  struct Sizes {
    Index N, M, m;
  };
  for (const auto& [N, M, m] : {Sizes{1, 1, 1}, {50, 50, 7}, {9, 70, 70}, {9, 5, 12}, {100, 9, 3}, {9, 600, 5}})
    check_definition("linformer", {},
                     {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
                      {"k", random_tensor({2, 2, M, 4}, 2, 2)},
                      {"v", random_tensor({2, 2, M, 3}, 3)},
                      {"e", random_tensor({m, M}, 5)},
                      {"f", random_tensor({m, M}, 6)},
                      {"dout", random_tensor({2, 2, N, 3}, 4)}},
                     definition);
}

// A sequence shorter than the longest uses the first columns of e and f.
BOOST_AUTO_TEST_CASE(shorter_sequences_by_definition) {
  constexpr Index longest = 11;
  for (const Index N : {1, 6, 10})
    check_definition("linformer", {},
                     {{"q", random_tensor({2, 2, N, 4}, 1, 2)},
                      {"k", random_tensor({2, 2, N, 4}, 2, 2)},
                      {"v", random_tensor({2, 2, N, 3}, 3)},
                      {"e", random_tensor({5, longest}, 5)},
                      {"f", random_tensor({5, longest}, 6)},
                      {"dout", random_tensor({2, 2, N, 3}, 4)}},
                     definition, {.longest = longest, .whole = false});
}

// With the identity as projection, Linformer is softmax attention.
BOOST_AUTO_TEST_CASE(of_the_identity) {
  const Index M = 9;
  Tensors x{{"q", random_tensor({2, 2, 7, 4}, 1, 2)},
            {"k", random_tensor({2, 2, M, 4}, 2, 2)},
            {"v", random_tensor({2, 2, M, 3}, 3)},
            {"dout", random_tensor({2, 2, 7, 3}, 4)}};
  const Tensors softmax = run_mechanism<double>("softmax", {}, x);
  Tensor<double> identity(Shape{M, M});
  for (Index i = 0; i < M; ++i) identity[i * M + i] = 1;
  x["e"] = identity, x["f"] = identity;
  Tensors linformer = run_mechanism<double>("linformer", {}, x);
  linformer.erase("de"), linformer.erase("df");
  check_same(linformer, softmax, 1e-13, "e = f = I");
}

BOOST_AUTO_TEST_CASE(cost_is_linear_in_tokens) {
  const AttentionShape shape{.heads = 3, .queries = 1024, .keys = 1024, .width = 32, .value_width = 32};
  const auto mechanism = make_mechanism("linformer", {{"length", "64"}});
  const Cost cost = mechanism->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * 4 * 1024 * 64 * 32);
  BOOST_TEST(cost.attention_exp == 3 * 1024 * 64);
  BOOST_TEST(mechanism->memory(shape).saved == 3 * (1024 * 64 + 2 * 64 * 32));
}

BOOST_AUTO_TEST_CASE(bad_lengths) {
  for (const char* length : {"0", "65537"})
    BOOST_TEST(refusal("linformer", {{"length", length}}) ==
               std::string("[linformer] length is ") + length + "; expected 1 to 65536");
  for (const char* length : {"1", "65536"}) BOOST_TEST(refusal("linformer", {{"length", length}}) == "");
  BOOST_TEST(refusal("linformer", {}) == "[linformer] length is not set; expected 1 to 65536");
  BOOST_TEST(refusal("linformer", {{"causal", "true"}, {"length", "2"}}) ==
             "[linformer] causal is 'true'; expected false, since the mechanism has no causal form");
}

BOOST_AUTO_TEST_SUITE_END()
