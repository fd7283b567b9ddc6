// Adder attention: hand-calculated values and extreme inputs. tests/checks/cases.cpp checks gradients, costs and
// agreement of float with double for every mechanism.
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <tuple>

using namespace heed;

namespace {

/// Returns operands with tokens of `channels` channels.
Tensors given(Index channels, const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v,
              const std::vector<double>& dout) {
  const Index count = static_cast<Index>(v.size()) / channels;
  return {{"q", tokens(count, channels, q)},
          {"k", tokens(count, channels, k)},
          {"v", tokens(count, channels, v)},
          {"dout", tokens(count, channels, dout)}};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adder_attention)

// One channel, two tokens whose score for each other is -ln 3: each token attends to itself with weight 3/4.
BOOST_AUTO_TEST_CASE(values_by_hand) {
  const double scale = 1 / std::sqrt(2 * (1 - 2 / std::acos(-1.0))), gap = std::log(3.0) / scale;
  const Tensors x = given(1, {0, gap}, {0, gap}, {4, 8}, {1, 0});
  const Tensors with = run_mechanism<double>("adder", {}, x);
  check_near(with.at("map"), {1.75, 0.25, 0.25, 1.75});
  check_near(with.at("out"), {5 + 4, 7 + 8});
  // d out_0 / d s_01 = 3/16 (8 - 4); s_01 grows as q_0 moves towards k_1. s_00 is at the kink, where sign is 0.
  check_near(with.at("dq"), {0.75 * scale, 0});
  check_near(with.at("dk"), {0, -0.75 * scale});
  check_near(with.at("dv"), {1.75, 0.25});

  const Tensors without = run_mechanism<double>("adder", {{"identity", "false"}}, x);
  check_near(without.at("out"), {5, 7});
  check_near(without.at("map"), {0.75, 0.25, 0.25, 0.75});
  check_near(without.at("dv"), {0.75, 0.25});
}

// Compares maps and outputs of several heads and images; with the identity, there are as many keys as queries.
BOOST_AUTO_TEST_CASE(by_definition) {
  constexpr Index heads = 2, d = 3, e = 2;
  for (const char* score_grad : {"sign", "hardtanh"})
    for (const auto& [N, M, identity] : {std::tuple(6, 6, true), {6, 6, false}, {3, 7, false}, {1, 1, true}}) {
      Tensors x{{"q", random_tensor({2, heads, N, d}, 1, 2)},
                {"k", random_tensor({2, heads, M, d}, 2, 2)},
                {"v", random_tensor({2, heads, M, e}, 3)}};
      const OptionValues options{{"identity", identity ? "true" : "false"}, {"score_grad", score_grad}};
      const Tensors got = run_mechanism<double>("adder", options, x);
      const double scale = 1 / std::sqrt(2 * static_cast<double>(d) * (1 - 2 / std::acos(-1.0)));
      for (Index head = 0; head < 2 * heads; ++head)
        for (Index i = 0; i < N; ++i) {
          std::vector<double> weights;
          double sum = 0;
          for (Index j = 0; j < M; ++j) {
            double distance = 0;
            for (Index c = 0; c < d; ++c)
              distance += std::abs(x["q"][(head * N + i) * d + c] - x["k"][(head * M + j) * d + c]);
            sum += weights.emplace_back(std::exp(-scale * distance));
          }
          std::vector<double> out(e);
          for (Index j = 0; j < M; ++j) {
            const double weight = weights[static_cast<std::size_t>(j)] / sum + (identity && i == j);
            BOOST_TEST(std::abs(got.at("map")[(head * N + i) * M + j] - weight) < 1e-14);
            for (Index c = 0; c < e; ++c) out[static_cast<std::size_t>(c)] += weight * x["v"][(head * M + j) * e + c];
          }
          for (Index c = 0; c < e; ++c)
            BOOST_TEST(std::abs(got.at("out")[(head * N + i) * e + c] - out[static_cast<std::size_t>(c)]) < 1e-14);
        }
    }
}

// More than one block of queries. Queries and keys differ by at least 1/16 in each channel, so that the distance has no
// kink nearby and `sign` is its derivative.
BOOST_AUTO_TEST_CASE(blocks_of_queries_by_definition) {
  constexpr Index d = 3;
  const auto eighths = [](Tensor<double> x, double offset) {
    for (double& value : x) value = std::round(8 * value) / 8 + offset;
    return x;
  };
  for (const auto& [N, M, identity] : {std::tuple(100, 100, true), {100, 110, false}, {110, 100, false}}) {
    const MapDefinition definition = [identity = identity](const DefinitionHead& x) {
      const double scale = 1 / std::sqrt(2 * static_cast<double>(d) * (1 - 2 / std::acos(-1.0)));
      SlowMatrix scores(x.N(), x.M());
      for (Index i = 0; i < x.N(); ++i)
        for (Index j = 0; j < x.M(); ++j)
          for (Index c = 0; c < d; ++c) scores(i, j) -= scale * std::abs(x.q(i, c) - x.k(j, c));
      SlowMatrix map = slow_softmax(scores);
      for (Index i = 0; identity && i < x.N(); ++i) map(i, i) += 1;
      return map;
    };
    check_definition("adder", {{"identity", identity ? "true" : "false"}, {"score_grad", "sign"}},
                     {{"q", eighths(random_tensor({1, 2, N, d}, 1, 2), 0)},
                      {"k", eighths(random_tensor({1, 2, M, d}, 2, 2), 1.0 / 16)},
                      {"v", random_tensor({1, 2, M, 2}, 3)},
                      {"dout", random_tensor({1, 2, N, 2}, 4)}},
                     definition);
  }
}

BOOST_AUTO_TEST_CASE(hardtanh_is_sign_beyond_one_and_the_difference_within) {
  const auto dq = [](const char* score_grad, const std::vector<double>& k) {
    const Tensors x = given(1, {0.25, -3}, k, {1, 2}, {1, -2});
    return run_mechanism<double>("adder", {{"score_grad", score_grad}}, x).at("dq");
  };
  const std::vector<double> far{4, 6}, near{0, 0.5};
  BOOST_TEST(dq("hardtanh", far).view() == dq("sign", far).view(), boost::test_tools::per_element());
  BOOST_TEST(dq("hardtanh", near)[0] == 0.25 * dq("sign", near)[0], boost::test_tools::tolerance(1e-12));
}

// Coordinates of 1e4 and 1e6: softmax subtracts the largest score, so nothing overflows. A score, at most 2 * size in
// magnitude, has a rounding error of up to 6e-8 of itself before the maximum is subtracted. The weights of two nearly
// tied keys change by as much as their scores, and values and cotangents multiply this by up to 4.
BOOST_AUTO_TEST_CASE(far_apart_tokens) {
  for (const double size : {1e4, 1e6}) {
    const Tensors x = given(2, {-size, size, 0.5, 2}, {size, size, -size, -size}, {1, 2, 3, 4}, {1, -1, 2, 0.5});
    const Tensors in_float = run_mechanism<float>("adder", {}, x), in_double = run_mechanism<double>("adder", {}, x);
    const double bound = 1e-5 + 4 * 2 * 6e-8 * 2 * size;
    for (const char* name : {"map", "out", "dv"}) {
      const Tensor<double>&a = in_float.at(name), &b = in_double.at(name);
      for (Index i = 0; i < b.size(); ++i) {
        BOOST_TEST(std::isfinite(a[i]));
        BOOST_TEST(std::abs(a[i] - b[i]) <= bound);
      }
    }
  }
}

// All distances are zero, so the softmax is uniform, and the gradients of q and k are zero.
BOOST_AUTO_TEST_CASE(identical_tokens) {
  const Tensors r = run_mechanism<double>("adder", {}, given(1, {7, 7, 7}, {7, 7, 7}, {1, 2, 6}, {1, 2, 3}));
  for (Index i = 0; i < 9; ++i) BOOST_TEST(r.at("map")[i] == 1.0 / 3 + (i % 4 == 0));
  check_near(r.at("dq"), {0, 0, 0}, 0);
  check_near(r.at("dk"), {0, 0, 0}, 0);
}

BOOST_AUTO_TEST_CASE(refusals_say_why) {
  const AttentionShape cross{.queries = 4, .keys = 5};
  BOOST_TEST(refusal("adder", {}, cross) ==
             "[adder] identity = true requires equal numbers of keys and queries, found 5 and 4");
  BOOST_TEST(refusal("adder", {{"identity", "false"}}, cross) == "");
}

// Memory has no term of size N x N or N x N x d, here at N = 4096.
BOOST_AUTO_TEST_CASE(memory_is_linear_in_the_number_of_tokens) {
  const AttentionShape shape{.heads = 3, .queries = 4096, .keys = 4096, .width = 64, .value_width = 64};
  const AttentionMemorySize memory = make_mechanism("adder", {})->memory(shape);
  BOOST_TEST(memory.saved == 2 * 3 * 4096);
  BOOST_TEST(memory.scratch == 2 * 64 * 4096);
}

BOOST_AUTO_TEST_SUITE_END()
