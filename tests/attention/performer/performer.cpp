// Performer compared with its definition, pair by pair, over several blocks of queries. tests/checks/cases.cpp checks
// gradients, costs and agreement of float with double at small shapes for all mechanisms.
#include "heed/base/random.h"
#include "heed/checks/attention_case.h"
#include "heed/checks/costcheck.h"
#include "support/definition.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;

namespace {

struct Sizes {
  Index N, M, d, e, m, images = 1;
};

// Exponents are differences of values of a few hundred, which float represents to four decimals.
constexpr double float_tolerance = 2e-4;

/// Returns operands. For growth > 1, keys become longer with their position, so that the stabiliser c grows in steps
/// over all blocks.
Tensors operands(const Sizes& s, double growth = 1) {
  Tensors x{{"q", random_tensor({s.images, 2, s.N, s.d}, 1, 2)},
            {"k", random_tensor({s.images, 2, s.M, s.d}, 2, 2)},
            {"v", random_tensor({s.images, 2, s.M, s.e}, 3)},
            {"omega", random_tensor({s.m, s.d}, 4, 2)},
            {"dout", random_tensor({s.images, 2, s.N, s.e}, 5)}};
  Tensor<double>& k = x["k"];
  for (Index i = 0; i < k.size(); ++i)
    k[i] *= 1 + (growth - 1) * static_cast<double>(i / s.d % s.M) / static_cast<double>(s.M);
  return x;
}

/// Returns the definition, which computes each weight W_ts separately.
MapDefinition definition(bool causal) {
  return [causal](const DefinitionHead& x) {
    const Tensor<double>& omega = x.x.at("omega");
    const double root = std::pow(static_cast<double>(x.d()), 0.25);
    // For each row: u_j = <omega_j, row> / root and, in the last column, h = |row|^2 / (2 root^2).
    const auto projected = [&](Index rows, const auto& of) {
      SlowMatrix u(rows, omega.shape()[0] + 1);
      for (Index t = 0; t < rows; ++t)
        for (Index c = 0; c < x.d(); ++c) {
          for (Index j = 0; j < u.columns - 1; ++j) u(t, j) += omega[j * x.d() + c] * of(t, c) / root;
          u(t, u.columns - 1) += std::pow(of(t, c) / root, 2) / 2;
        }
      return u;
    };
    const SlowMatrix q = projected(x.N(), [&](Index t, Index c) { return x.q(t, c); });
    const SlowMatrix k = projected(x.M(), [&](Index t, Index c) { return x.k(t, c); });
    const Index m = q.columns - 1;
    SlowMatrix W(x.N(), x.M());
    for (Index t = 0; t < W.rows; ++t) {
      const Index seen = causal ? std::min(t + 1, W.columns) : W.columns;
      double q_max = -1e300, k_max = -1e300, sum = 0;
      for (Index j = 0; j < m; ++j) {
        q_max = std::max(q_max, q(t, j));
        for (Index s = 0; s < seen; ++s) k_max = std::max(k_max, k(s, j));
      }
      for (Index s = 0; s < seen; ++s) {
        for (Index j = 0; j < m; ++j)
          W(t, s) += (std::exp(q(t, j) - q(t, m) - q_max) + 1e-4) * (std::exp(k(s, j) - k(s, m) - k_max) + 1e-4);
        sum += W(t, s);
      }
      for (Index s = 0; s < seen; ++s) W(t, s) /= sum;
    }
    return W;
  };
}

OptionValues options(bool causal) { return {{"causal", causal ? "true" : "false"}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(performer)

BOOST_AUTO_TEST_CASE(by_definition) {
  for (const Sizes& s :
       {Sizes{150, 150, 3, 2, 5}, Sizes{140, 70, 2, 3, 4}, Sizes{70, 140, 2, 3, 4, 2}, Sizes{10, 300, 3, 2, 600}})
    for (const bool causal : {false, true})
      for (const double growth : {1.0, 4.0})
        check_definition("performer", options(causal), operands(s, growth), definition(causal), {}, float_tolerance);
}

// The features of two heads are too large to be saved and are recomputed in the backward pass; those of one head alone
// are saved.
BOOST_AUTO_TEST_CASE(features_that_are_not_kept) {
  const Tensors x = operands({60, 900, 3, 2, 600}, 4), both = run_mechanism<double>("performer", {}, x);
  for (Index head = 0; head < 2; ++head) {
    const auto of_head = [&](const Tensors& tensors) {
      Tensors part;
      for (const auto& [name, tensor] : tensors) {
        if (tensor.shape().rank() != 4) {
          part[name] = tensor;
          continue;
        }
        Tensor<double>& rows = part[name] = Tensor<double>({1, 1, tensor.shape()[2], tensor.shape()[3]});
        std::copy_n(tensor.data() + head * rows.size(), rows.size(), rows.data());
      }
      return part;
    };
    check_same(of_head(both), run_mechanism<double>("performer", {}, of_head(x)), 1e-13, "a head alone");
  }
}

BOOST_AUTO_TEST_CASE(costs_of_features_that_are_not_kept) {
  const auto mechanism = make_mechanism("performer", {{"features", "1800"}});
  const auto c = attention_case("performer", *mechanism, {"", 1, 2, 150, 150, 4, 0, 0, false});
  for (const CheckedCost& row : costcheck(*c)) BOOST_TEST(row.passed(), row.pass);
}

// One key raises the stabiliser c so much that the exps of all earlier keys, in its block and in earlier ones, vanish
// compared with the added 1e-4. Nothing overflows.
BOOST_AUTO_TEST_CASE(keys_that_dwarf_all_before_them) {
  const Sizes s{150, 150, 3, 2, 5};
  for (const Index place : {20, 64, 100}) {
    Tensors x = operands(s);
    for (Index c = 0; c < s.d; ++c) x["k"][place * s.d + c] = 60 * x["omega"][s.d + c];
    for (const bool causal : {false, true})
      check_definition("performer", options(causal), x, definition(causal), {}, float_tolerance);
  }
}

// The exps of long keys are far below the added 1e-4, so attention is nearly uniform. The keys' gradient is small, but
// float must not lose it to rounding. The tolerance, 1e-3 of the largest element, is about ten times the rounding error
// for exponents of a few hundred.
BOOST_AUTO_TEST_CASE(gradients_where_attention_is_nearly_uniform) {
  for (const bool causal : {false, true}) {
    Tensors x = operands({64, 64, 32, 4, 4});
    for (double& number : x["k"]) number *= 2.6;
    const Tensors exact = run_mechanism<double>("performer", options(causal), x),
                  fast = run_mechanism<float>("performer", options(causal), x);
    for (const char* name : {"dq", "dk", "dv"}) {
      double largest = 0, error = 0;
      for (Index i = 0; i < exact.at(name).size(); ++i) {
        largest = std::max(largest, std::abs(exact.at(name)[i]));
        error = std::max(error, std::abs(fast.at(name)[i] - exact.at(name)[i]));
      }
      BOOST_TEST(error < 1e-3 * largest, name << (causal ? ", causal" : "") << ": " << error << " of " << largest);
    }
  }
}

// For normal rows of omega, <phi(q), phi(k)> / m is an unbiased estimate of exp(q k^T / sqrt(d)), here with a deviation
// of at most 1/100: with this many features it gives softmax attention's map, to 5 %.
BOOST_AUTO_TEST_CASE(many_features_are_softmax) {
  Tensors x{{"q", random_tensor({1, 1, 6, 4}, 1)},
            {"k", random_tensor({1, 1, 6, 4}, 2)},
            {"v", random_tensor({1, 1, 6, 2}, 3)},
            {"dout", random_tensor({1, 1, 6, 2}, 4)}};
  const Tensor<double> softmax = run_mechanism<double>("softmax", {}, x).at("map");
  x["omega"] = Tensor<double>(Shape{40'000, 4});
  for (Index i = 0; i < x["omega"].size(); ++i) x["omega"][i] = RandomStream(5).normal(i);
  const Tensor<double> performer = run_mechanism<double>("performer", {}, x).at("map");
  for (Index i = 0; i < 36; ++i) BOOST_TEST(std::abs(performer[i] - softmax[i]) < 0.05 * softmax[i]);
}

BOOST_AUTO_TEST_CASE(float_over_several_blocks) {
  for (const Sizes& s : {Sizes{300, 300, 16, 16, 40}, Sizes{300, 130, 16, 32, 64}, Sizes{130, 300, 8, 9, 17}})
    for (const bool causal : {false, true}) {
      const Tensors x = operands(s);
      check_same(run_mechanism<float>("performer", options(causal), x),
                 run_mechanism<double>("performer", options(causal), x), 1e-4, causal ? "causal" : "whole");
    }
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  for (const bool causal : {false, true}) {
    OptionValues values = options(causal);
    values["features"] = "64";
    const auto mechanism = make_mechanism("performer", values);
    const AttentionShape shape{.heads = 2, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
    BOOST_TEST(mechanism->memory(shape).saved == 2 * (4096 * (2 * 64 + 5) + (causal ? 0 : 64 * 17 + 16)));
    BOOST_TEST(mechanism->memory(shape).scratch <= 4096 * (64 + 16 + 4) + 128 * (3 * 64 + 3 * 64 + 6 * 16));
  }
}

BOOST_AUTO_TEST_CASE(what_papers_count) {
  const AttentionShape shape{.heads = 3, .queries = 50, .keys = 50, .width = 16, .value_width = 32};
  const Cost cost = make_mechanism("performer", {{"features", "40"}})->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * (2 * 50 * 40 * 16 + 2 * 50 * 40 * 32 + 50 * 40));
  BOOST_TEST(cost.forward_contractions.add == 3 * (2 * 50 * 40 * 16 + 2 * 50 * 40 * 32 + 2 * 50 * 40));
  BOOST_TEST(cost.attention_exp == 3 * 2 * 50 * 40);
}

BOOST_AUTO_TEST_CASE(refused) {
  BOOST_TEST(refusal("performer", {}) == "[performer] features is not set; expected 1 to 65536, the rows of omega");
  BOOST_TEST(refusal("performer", {{"features", "0"}}) ==
             "[performer] features is 0; expected 1 to 65536, the rows of omega");
  BOOST_TEST(refusal("performer", {{"features", "65537"}}) ==
             "[performer] features is 65537; expected 1 to 65536, the rows of omega");
  for (const char* features : {"1", "65536"}) BOOST_TEST(refusal("performer", {{"features", features}}) == "");
  BOOST_TEST(refusal("performer", {{"features", "-1"}}) ==
             "[performer] features is '-1'; expected a whole number from 0 to 1000000000000");
}

BOOST_AUTO_TEST_SUITE_END()
