// Linear attention compared with hand-calculated values, and with its definition over several blocks of queries.
// tests/checks/cases.cpp checks gradients, costs and agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

constexpr double eps = 1e-6;

double feature(double x) { return x > 0 ? x + 1 : std::exp(x); }

MapDefinition definition(bool causal) {
  return [causal](const DefinitionHead& x) {
    SlowMatrix q(x.N(), x.d()), k(x.d(), x.M());
    for (Index c = 0; c < x.d(); ++c) {
      for (Index i = 0; i < x.N(); ++i) q(i, c) = feature(x.q(i, c));
      for (Index j = 0; j < x.M(); ++j) k(c, j) = feature(x.k(j, c));
    }
    SlowMatrix A = q * k;
    for (Index i = 0; i < A.rows; ++i) {
      double sum = eps;
      for (Index j = 0; j < A.columns; ++j) {
        if (causal && j > i) A(i, j) = 0;
        sum += A(i, j);
      }
      for (Index j = 0; j < A.columns; ++j) A(i, j) /= sum;
    }
    return A;
  };
}

}  // namespace

BOOST_AUTO_TEST_SUITE(linear_attention)

// f(q) = (2, 1/2), f(k) = (1, 3), v = (4, 8): S = 28, z = 4, out_i = 28 f_i / (4 f_i + eps).
// With u_i = f_i / (4 f_i + eps): dv = (1, 3) (u_1 + u_2). The derivative of out_i = u_i S with respect to f_i is
// eps S / (4 f_i + eps)^2, with f'(1) = 1 and f'(-ln 2) = 1/2; with respect to f(k_j) it is u_i (v_j - out_i), with
// f'(0) = f'(2) = 1.
BOOST_AUTO_TEST_CASE(by_hand) {
  const Tensors r = run_mechanism<double>(
      "linear", {},
      {{"q", tokens(2, 1, {1, -std::log(2.0)})}, {"k", tokens(2, 1, {0, 2})}, {"v", tokens(2, 1, {4, 8})}});
  const double D[] = {8 + eps, 2 + eps}, u[] = {2 / D[0], 0.5 / D[1]}, out[] = {28 * u[0], 28 * u[1]};
  check_near(r.at("out"), {out[0], out[1]});
  check_near(r.at("map"), {u[0], 3 * u[0], u[1], 3 * u[1]});
  check_near(r.at("dv"), {u[0] + u[1], 3 * (u[0] + u[1])});
  check_near(r.at("dq"), {28 * eps / (D[0] * D[0]), 0.5 * 28 * eps / (D[1] * D[1])});
  check_near(r.at("dk"), {u[0] * (4 - out[0]) + u[1] * (4 - out[1]), u[0] * (8 - out[0]) + u[1] * (8 - out[1])});
}

// The first query attends to the first key only; no query attends to the third key.
BOOST_AUTO_TEST_CASE(causal_by_hand) {
  const Tensors r = run_mechanism<double>(
      "linear", {{"causal", "true"}},
      {{"q", tokens(2, 1, {1, 0})}, {"k", tokens(3, 1, {0, 2, 5})}, {"v", tokens(3, 1, {4, 8, 9})}});
  check_near(r.at("out"), {8 / (2 + eps), 28 / (4 + eps)});
  check_near(r.at("map"), {2 / (2 + eps), 0, 0, 1 / (4 + eps), 3 / (4 + eps), 0});
  check_near(r.at("dv"), {2 / (2 + eps) + 1 / (4 + eps), 3 / (4 + eps), 0});
}

BOOST_AUTO_TEST_CASE(by_definition) {
  struct Sizes {
    Index N, M;
  };
  for (const char* causal : {"false", "true"})
    for (const auto& [N, M] :
         {Sizes{1, 1}, {64, 64}, {65, 65}, {150, 150}, {150, 70}, {70, 150}, {130, 64}, {600, 300}})
      check_definition("linear", {{"causal", causal}},
                       {{"q", random_tensor({1, 2, N, 4}, 1, 2)},
                        {"k", random_tensor({1, 2, M, 4}, 2, 2)},
                        {"v", random_tensor({1, 2, M, 3}, 3)},
                        {"dout", random_tensor({1, 2, N, 3}, 4)}},
                       definition(*causal == 't'));
}

// exp(-200) underflows in float. A query with this feature has the output 0, since the divisor is at least 1e-6.
BOOST_AUTO_TEST_CASE(extreme_numbers) {
  const Tensors x{{"q", tokens(2, 1, {-200, 1e4})}, {"k", tokens(2, 1, {1e4, -200})}, {"v", tokens(2, 1, {3, 5})}};
  for (const Tensors& r : {run_mechanism<double>("linear", {}, x), run_mechanism<float>("linear", {}, x)}) {
    check_near(r.at("out"), {0, 3}, 1e-6);
    check_near(r.at("dv"), {1, 0}, 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(memory_and_time_are_linear_in_tokens) {
  for (const bool causal : {false, true}) {
    const auto mechanism = make_mechanism("linear", {{"causal", causal ? "true" : "false"}});
    const auto shape = [](Index tokens) {
      return AttentionShape{.heads = 1, .queries = tokens, .keys = tokens, .width = 16, .value_width = 16};
    };
    const AttentionMemorySize size = mechanism->memory(shape(4096));
    const Index features = causal ? 16 + 16 : 0;                     // saved if causal, else recomputed
    BOOST_TEST(size.saved == 4096 * (features + 1) + 16 * 16 + 16);  // also D, S and z
    BOOST_TEST(size.scratch <= 4096 * (3 * 16 + 1) + 16 * 17 + 2 * 64 * 64);
    const Cost one = mechanism->cost(shape(1024)), two = mechanism->cost(shape(2048));
    BOOST_TEST(two.forward_contractions.mul == 2 * one.forward_contractions.mul);
    BOOST_TEST(one.forward_contractions.mul == 2 * 1024 * 16 * 16 + 1024 * 16);
    BOOST_TEST(one.forward_contractions.add == 2 * 1024 * 16 * 16 + 2 * 1024 * 16);
    BOOST_TEST(one.attention_exp == 2 * 1024 * 16);
  }
}

BOOST_AUTO_TEST_SUITE_END()
