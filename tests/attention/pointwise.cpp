// Point-wise attention compared with hand-calculated values. tests/checks/cases.cpp checks gradients, costs and
// agreement of float with double for all mechanisms; tests/kernels/elements/pointwise.cpp checks the functions
// themselves.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <tuple>

using namespace heed;

namespace {

/// Runs one head of width 1.
template <class T>
Tensors run(const OptionValues& options, const std::vector<double>& q, const std::vector<double>& k,
            const std::vector<double>& v) {
  const auto column = [](const std::vector<double>& x) { return tokens(static_cast<Index>(x.size()), 1, x); };
  return run_mechanism<T>("pointwise", options, {{"q", column(q)}, {"k", column(k)}, {"v", column(v)}});
}

const std::vector<double> q{1, -2}, k{3, -1}, v{5, 7};  // S = [[3, -1], [-6, 2]]

}  // namespace

BOOST_AUTO_TEST_SUITE(pointwise_attention)

// A = [[3, 0], [0, 2]] / 2, out = (15/2, 7). dv = (3/2, 1); dA = [[5, 7], [5, 7]],
// dS = [[5, 0], [0, 7]] / 2, dq = (15/2, -7/2), dk = (5/2, -7).
BOOST_AUTO_TEST_CASE(relu_by_hand) {
  const Tensors r = run<double>({}, q, k, v);
  check_near(r.at("out"), {7.5, 7});
  check_near(r.at("dv"), {1.5, 1});
  check_near(r.at("dq"), {7.5, -3.5});
  check_near(r.at("dk"), {2.5, -7});
}

BOOST_AUTO_TEST_CASE(alpha_and_causal) {
  check_near(run<double>({{"alpha", "0"}}, q, k, v).at("out"), {15, 14});
  const double root = std::sqrt(2.0);
  check_near(run<double>({{"alpha", "0.5"}}, q, k, v).at("out"), {15 / root, 14 / root});
  // The first query attends to the first key only; the divisor remains 2.
  const Tensors r = run<double>({{"causal", "true"}, {"phi", "identity"}}, q, k, v);
  check_near(r.at("out"), {7.5, (-30 + 14) / 2.0});
  check_near(r.at("dv"), {(3 - 6) / 2.0, 1});
  check_near(r.at("dq"), {7.5, (15 - 7) / 2.0});
  check_near(r.at("dk"), {(5 - 10) / 2.0, -7});
}

using Phi = double (*)(double);

double gelu_by_definition(double s) { return s / 2 * (1 + std::erf(s / std::sqrt(2.0))); }

/// Returns the definition of the map phi(q k^T / sqrt(d)) / divisor.
MapDefinition pointwise_map(Phi phi, double divisor, bool causal) {
  return [=](const DefinitionHead& x) {
    SlowMatrix map(x.N(), x.M());
    for (Index i = 0; i < x.N(); ++i)
      for (Index j = 0; j < (causal ? std::min(i + 1, x.M()) : x.M()); ++j) {
        double s = 0;
        for (Index c = 0; c < x.d(); ++c) s += x.q(i, c) * x.k(j, c) / std::sqrt(static_cast<double>(x.d()));
        map(i, j) = phi(s) / divisor;
      }
    return map;
  };
}

// Every phi, with three alphas. The divisor is M^alpha for M keys; for growing sequences, M is the longest length.
BOOST_AUTO_TEST_CASE(by_definition) {
  const std::pair<const char*, Phi> functions[] = {{"relu", [](double s) { return std::max(s, 0.0); }},
                                                   {"relu2", [](double s) { return s > 0 ? s * s : 0; }},
                                                   {"gelu", gelu_by_definition},
                                                   {"softplus", [](double s) { return std::log(1 + std::exp(s)); }},
                                                   {"identity", [](double s) { return s; }},
                                                   {"relu6", [](double s) { return std::clamp(s, 0.0, 6.0); }},
                                                   {"sigmoid", [](double s) { return 1 / (1 + std::exp(-s)); }}};
  for (const auto& [phi, function] : functions)
    for (const char* alpha : {"0", "0.3", "1"})
      for (const bool causal : {false, true})
        for (const auto& [N, M, longest] : {std::tuple(5, 7, 0), {6, 6, 11}, {1, 1, 4}}) {
          const double divisor = std::pow(longest > 0 ? longest : M, std::stod(alpha));
          check_definition("pointwise", {{"phi", phi}, {"alpha", alpha}, {"causal", causal ? "true" : "false"}},
                           {{"q", random_tensor({2, 2, N, 3}, 1, 3)},
                            {"k", random_tensor({2, 2, M, 3}, 2, 3)},
                            {"v", random_tensor({2, 2, M, 4}, 3)},
                            {"dout", random_tensor({2, 2, N, 4}, 4)}},
                           pointwise_map(function, divisor, causal), {.longest = longest, .growing = longest > 0});
        }
}

// The divisor of a complete sequence is its own length, not the longest.
BOOST_AUTO_TEST_CASE(the_divisor_is_the_own_length) {
  const auto column = [](const std::vector<double>& x) { return tokens(2, 1, x); };
  const Tensors x{{"q", column(q)}, {"k", column(k)}, {"v", column(v)}};
  check_near(run_mechanism<double>("pointwise", {}, x, {.longest = 8, .whole = false}).at("out"), {7.5, 7});
  check_near(run_mechanism<double>("pointwise", {}, x, {.longest = 8, .growing = true}).at("out"), {7.5 / 4, 7.0 / 4});
}

// More than one block of queries. gelu has no kinks, at which finite differences would not approximate derivatives.
BOOST_AUTO_TEST_CASE(blocks_of_queries_by_definition) {
  for (const bool causal : {false, true})
    for (const auto& [N, M] : {std::pair<Index, Index>{100, 110}, {110, 100}})
      check_definition("pointwise", {{"phi", "gelu"}, {"causal", causal ? "true" : "false"}},
                       {{"q", random_tensor({1, 2, N, 3}, 1, 2)},
                        {"k", random_tensor({1, 2, M, 3}, 2, 2)},
                        {"v", random_tensor({1, 2, M, 4}, 3)},
                        {"dout", random_tensor({1, 2, N, 4}, 4)}},
                       pointwise_map(gelu_by_definition, static_cast<double>(M), causal));
}

// Keys that no query attends to get a zero gradient.
BOOST_AUTO_TEST_CASE(causal_with_more_keys_than_queries) {
  const Tensors r = run<double>({{"causal", "true"}}, {1}, {3, 4, 5}, {6, 7, 8});
  check_near(r.at("out"), {6});
  check_near(r.at("dk"), {2, 0, 0});
  check_near(r.at("dv"), {1, 0, 0});
}

BOOST_AUTO_TEST_CASE(relu6_is_flat_above_6) {
  const Tensors r = run<double>({{"phi", "relu6"}}, {2, 2, 2}, {1, 3, 4}, {1, 1, 1});  // scores 2, 6 and 8 in each row
  check_near(r.at("out"), {14.0 / 3, 14.0 / 3, 14.0 / 3});
  check_near(r.at("dq"), {1.0 / 3, 1.0 / 3, 1.0 / 3});  // from the score 2 only: 6 is a kink and 8 is beyond
  check_near(r.at("dk"), {2, 0, 0});
}

// Scores of up to 1e4 in magnitude, and more than one block of queries.
BOOST_AUTO_TEST_CASE(large_scores_in_float) {
  std::vector<double> in[3];
  for (int operand = 0; operand < 3; ++operand)
    for (int i = 0; i < 150; ++i)
      in[operand].push_back(static_cast<float>((operand == 2 ? 1 : 100) * std::sin(0.37 * i + operand)));
  for (const char* phi : {"relu", "relu2", "gelu", "softplus", "identity", "relu6", "sigmoid"})
    check_same(run<float>({{"phi", phi}}, in[0], in[1], in[2]), run<double>({{"phi", phi}}, in[0], in[1], in[2]), 1e-5,
               phi, 0);
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  const auto mechanism = make_mechanism("pointwise", {});
  const AttentionShape shape{.heads = 2, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
  BOOST_TEST(mechanism->memory(shape).saved == 0);
  BOOST_TEST(mechanism->memory(shape).scratch == 2 * 64 * 640);  // S for part of the keys, A
  const AttentionShape small{.heads = 2, .queries = 64, .keys = 64, .width = 16, .value_width = 16};
  BOOST_TEST(mechanism->memory(small).saved == 2 * 64 * 64);
}

BOOST_AUTO_TEST_CASE(options_are_refused_with_a_reason) {
  BOOST_TEST(refusal("pointwise", {{"phi", "relu7"}}) == "[pointwise] phi is 'relu7'; did you mean 'relu'?");
  BOOST_TEST(refusal("pointwise", {{"alpha", "-0.1"}}) == "[pointwise] alpha is -0.1; expected 0 to 1");
  BOOST_TEST(refusal("pointwise", {{"alpha", "1.5"}}) == "[pointwise] alpha is 1.5; expected 0 to 1");
  BOOST_TEST(refusal("pointwise", {{"alpha", "nan"}}) == "[pointwise] alpha is nan; expected 0 to 1");
}

BOOST_AUTO_TEST_SUITE_END()
