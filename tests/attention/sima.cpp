// SimA compared with hand-calculated values, and for extreme inputs. tests/checks/cases.cpp checks gradients, costs and
// agreement of float with double for all mechanisms.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

Tensors operands(Index count, Index channels, const std::vector<double>& q, const std::vector<double>& k,
                 const std::vector<double>& v) {
  return {{"q", tokens(count, channels, q)}, {"k", tokens(count, channels, k)}, {"v", tokens(count, channels, v)}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sima)

// q = (1, -3), k = (2, 2), v = (1, 5): qn = (1/4, -3/4), kn = (1/2, 1/2), S = 3, out = (3/4, -9/4).
// dout = (1, 1): dqn = (3, 3), dS = -1/2, dkn = (-1/2, -5/2), dv = (-1/4, -1/4).
// <qn, dqn> = -3/2: dq = ((3 + 3/2) / 4, (3 - 3/2) / 4); <kn, dkn> = -3/2: dk = ((-1/2 + 3/2) / 4, (-5/2 + 3/2) / 4).
BOOST_AUTO_TEST_CASE(by_hand) {
  const Tensors x = operands(2, 1, {1, -3}, {2, 2}, {1, 5});
  for (const char* order : {"auto", "qk_first", "kv_first"}) {
    const Tensors r = run_mechanism<double>("sima", {{"order", order}}, x);
    check_near(r.at("out"), {0.75, -2.25});
    check_near(r.at("dq"), {4.5 / 4, 1.5 / 4});
    check_near(r.at("dk"), {0.25, -0.25});
    check_near(r.at("dv"), {-0.25, -0.25});
    const auto out = [&](const char* norm) {
      return run_mechanism<double>("sima", {{"order", order}, {"norm", norm}}, x).at("out");
    };
    check_near(out("none"), {12, -36});
    const double root = std::sqrt(80.0);
    check_near(out("l2"), {12 / root, -36 / root});
  }
}

// Channels of q are divided by their norm over N tokens, those of k over M. 100 queries are two blocks.
BOOST_AUTO_TEST_CASE(by_definition) {
  for (const std::string norm : {"l1", "l2", "none"})
    for (const char* order : {"auto", "qk_first", "kv_first"})
      for (const auto& [N, M] : {std::pair(2, 3), {7, 7}, {9, 4}, {1, 6}, {100, 70}}) {
        const MapDefinition definition = [&](const DefinitionHead& x) {
          const auto length = [&](Index count, const auto& channel) {
            double sum = 0;
            for (Index t = 0; t < count; ++t) sum += norm == "l1" ? std::abs(channel(t)) : channel(t) * channel(t);
            return norm == "none" ? 1 : norm == "l1" ? sum : std::sqrt(sum);
          };
          SlowMatrix map(x.N(), x.M());
          for (Index c = 0; c < x.d(); ++c) {
            const double of_q = length(x.N(), [&](Index t) { return x.q(t, c); }),
                         of_k = length(x.M(), [&](Index t) { return x.k(t, c); });
            for (Index i = 0; i < x.N(); ++i)
              for (Index j = 0; j < x.M(); ++j) map(i, j) += x.q(i, c) / of_q * x.k(j, c) / of_k;
          }
          return map;
        };
        check_definition("sima", {{"norm", norm}, {"order", order}},
                         {{"q", random_tensor({2, 2, N, 4}, 1)},
                          {"k", random_tensor({2, 2, M, 4}, 2)},
                          {"v", random_tensor({2, 2, M, 3}, 3)},
                          {"dout", random_tensor({2, 2, N, 3}, 4)}},
                         definition);
      }
}

BOOST_AUTO_TEST_CASE(the_order_taken_is_the_cheaper_one) {
  const auto multiplications = [](const char* order, Index tokens) {
    const AttentionShape shape{.heads = 3, .queries = tokens, .keys = tokens, .width = 64, .value_width = 64};
    return make_mechanism("sima", {{"order", order}})->cost(shape).forward_contractions.mul;
  };
  BOOST_TEST(multiplications("auto", 50) == 3 * 2 * 50 * 50 * 64);
  BOOST_TEST(multiplications("auto", 50) == multiplications("qk_first", 50));
  BOOST_TEST(multiplications("auto", 64) == multiplications("kv_first", 64));
  BOOST_TEST(multiplications("auto", 197) == 3 * 2 * 197 * 64 * 64);
  // With as many queries as channels both orders cost about the same; auto chooses kv_first, whose saved memory
  // includes k^T v.
  const auto saved = [](const char* order) {
    const AttentionShape shape{.heads = 3, .queries = 64, .keys = 70, .width = 64, .value_width = 64};
    return make_mechanism("sima", {{"order", order}})->memory(shape).saved;
  };
  BOOST_TEST(saved("auto") == saved("kv_first"));
  BOOST_TEST(saved("kv_first") == saved("qk_first") + 3 * 64 * 64);
}

// The paper's 4.6 G multiply-adds for DeiT-S on images of 224 x 224 assume that q k^T is computed first: the 12 blocks'
// products q k^T and A v take 0.36 G of them.
BOOST_AUTO_TEST_CASE(no_exponentials_and_the_papers_count) {
  const AttentionShape deit_small{.heads = 6, .queries = 197, .keys = 197, .width = 64, .value_width = 64};
  const Cost cost = make_mechanism("sima", {{"order", "qk_first"}})->cost(deit_small);
  BOOST_TEST(cost.forward.exp == 0);
  BOOST_TEST(cost.attention_exp == 0);
  BOOST_TEST(cost.forward_contractions.mul == 6 * 2 * 197 * 197 * 64);
  BOOST_TEST(std::lround(12 * static_cast<double>(cost.forward_contractions.mul) / 1e7) == 36);
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  for (const char* order : {"auto", "qk_first", "kv_first"}) {
    const auto mechanism = make_mechanism("sima", {{"order", order}});
    const AttentionShape shape{.heads = 1, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
    // qn, kn, their gradients; blocks of 64 rows if q k^T is computed first
    BOOST_TEST(mechanism->memory(shape).saved <= 2 * 4096 * 16 + 32 + 16 * 16);
    BOOST_TEST(mechanism->memory(shape).scratch <= 2 * 4096 * 16 + (order[0] == 'q' ? 2 * 64 * 4096 : 16 * 16));
  }
}

// A zero channel stays zero, and its gradient is dxn / 1e-12: large but finite, and the same in float and double.
BOOST_AUTO_TEST_CASE(a_channel_of_zeros) {
  const std::vector<double> q{0, 1, 0, -2, 0, 0.5}, k{0.5, 0, -1, 0, 2, 0}, v{1, 2, 3, 4, 5, 6};
  for (const char* norm : {"l1", "l2"})
    for (const char* order : {"qk_first", "kv_first"}) {
      const OptionValues options{{"norm", norm}, {"order", order}};
      const Tensors x = operands(3, 2, q, k, v);
      const Tensors exact = run_mechanism<double>("sima", options, x);
      const Tensors rounded = run_mechanism<float>("sima", options, x);
      for (const auto& [name, tolerance] : {std::pair("out", 1e-6), {"dq", 1e-5}, {"dk", 1e-5}, {"dv", 1e-6}})
        check_near(rounded.at(name), {exact.at(name).begin(), exact.at(name).end()}, tolerance);
    }
}

BOOST_AUTO_TEST_CASE(identical_tokens_and_large_numbers) {
  const std::vector<double> same{1e4, -3e4, 1e4, -3e4, 1e4, -3e4}, v{1, 2, 3, 4, 5, 6};
  const Tensors r = run_mechanism<float>("sima", {}, operands(3, 2, same, same, v));
  // qn = kn = +-1/3: A = 2/9 everywhere
  check_near(r.at("out"), {2, 8.0 / 3, 2, 8.0 / 3, 2, 8.0 / 3}, 1e-6);
}

BOOST_AUTO_TEST_CASE(options_are_refused_with_a_reason) {
  BOOST_TEST(refusal("sima", {{"norm", "l3"}}) == "[sima] norm is 'l3'; did you mean 'l1'?");
  BOOST_TEST(refusal("sima", {{"causal", "true"}}) ==
             "[sima] causal is 'true'; expected false, since the mechanism has no causal form");
}

BOOST_AUTO_TEST_SUITE_END()
