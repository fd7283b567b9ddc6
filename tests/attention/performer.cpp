// Performer against its definition, pair by pair, over several blocks of queries. Small shapes' gradients, costs and
// agreement of number types are checked over all mechanisms in tests/checks/cases.cpp.
#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>

using namespace heed;

namespace {

struct Sizes {
  Index N, M, d, e, m;
};

/// Keys of growing length, so that c grows in steps over all blocks.
Tensors operands(const Sizes& s, double growth = 1) {
  Tensors x{{"q", random_tensor({1, 1, s.N, s.d}, 1, 2)},
            {"k", random_tensor({1, 1, s.M, s.d}, 2, 2)},
            {"v", random_tensor({1, 1, s.M, s.e}, 3)},
            {"omega", random_tensor({s.m, s.d}, 4, 2)},
            {"dout", random_tensor({1, 1, s.N, s.e}, 5)}};
  for (Index t = 0; t < s.M; ++t)
    for (Index c = 0; c < s.d; ++c)
      x["k"][t * s.d + c] *= 1 + (growth - 1) * static_cast<double>(t) / static_cast<double>(s.M);
  return x;
}

/// The definition: every weight W_ts by itself.
std::vector<double> defined(const Sizes& s, const Tensors& x, bool causal) {
  const double root = std::pow(static_cast<double>(s.d), 0.25);
  const auto u = [&](const char* name, Index t, Index j) {
    double sum = 0;
    for (Index c = 0; c < s.d; ++c) sum += x.at("omega")[j * s.d + c] * x.at(name)[t * s.d + c] / root;
    return sum;
  };
  const auto half = [&](const char* name, Index t) {
    double sum = 0;
    for (Index c = 0; c < s.d; ++c) sum += std::pow(x.at(name)[t * s.d + c] / root, 2) / 2;
    return sum;
  };
  std::vector<double> out;
  for (Index t = 0; t < s.N; ++t) {
    const Index seen = causal ? std::min(t + 1, s.M) : s.M;
    double q_max = -1e300, k_max = -1e300;
    for (Index j = 0; j < s.m; ++j) {
      q_max = std::max(q_max, u("q", t, j));
      for (Index i = 0; i < seen; ++i) k_max = std::max(k_max, u("k", i, j));
    }
    std::vector<double> value(static_cast<std::size_t>(s.e));
    double sum = 0;
    for (Index i = 0; i < seen; ++i) {
      double weight = 0;
      for (Index j = 0; j < s.m; ++j)
        weight += (std::exp(u("q", t, j) - half("q", t) - q_max) + 1e-4) *
                  (std::exp(u("k", i, j) - half("k", i) - k_max) + 1e-4);
      sum += weight;
      for (Index c = 0; c < s.e; ++c) value[static_cast<std::size_t>(c)] += weight * x.at("v")[i * s.e + c];
    }
    for (const double v : value) out.push_back(v / sum);
  }
  return out;
}

double loss(const Sizes& s, const Tensors& x, bool causal) {
  const std::vector<double> out = defined(s, x, causal);
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * x.at("dout")[static_cast<Index>(i)];
  return sum;
}

OptionValues options(bool causal) { return {{"causal", causal ? "true" : "false"}}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(performer)

BOOST_AUTO_TEST_CASE(as_defined) {
  for (const Sizes& s : {Sizes{150, 150, 3, 2, 5}, Sizes{140, 70, 2, 3, 4}, Sizes{70, 140, 2, 3, 4}})
    for (const bool causal : {false, true})
      for (const double growth : {1.0, 4.0}) {
        const Tensors x = operands(s, growth), results = run_mechanism<double>("performer", options(causal), x);
        check_near(results.at("out"), defined(s, x, causal), 1e-12);
        for (const char* name : {"q", "k", "v"})
          for (Index i = 0; i < x.at(name).size(); i += 37) {
            Tensors more = x, less = x;
            const double step = 1e-5;
            more[name][i] += step, less[name][i] -= step;
            const double expected = (loss(s, more, causal) - loss(s, less, causal)) / (2 * step);
            const double got = results.at(std::string("d") + name)[i];
            BOOST_TEST(std::abs(got - expected) <= 1e-7 * std::max(1.0, std::abs(expected)),
                       name << "[" << i << "], causal " << causal << ": got " << got << ", expected " << expected);
          }
      }
}

BOOST_AUTO_TEST_CASE(the_map_multiplies_v) {
  const Sizes s{150, 150, 3, 2, 5};
  for (const bool causal : {false, true}) {
    const Tensors x = operands(s), results = run_mechanism<double>("performer", options(causal), x);
    for (Index t = 0; t < s.N; ++t)
      for (Index c = 0; c < s.e; ++c) {
        double sum = 0;
        for (Index i = 0; i < s.M; ++i) sum += results.at("map")[t * s.M + i] * x.at("v")[i * s.e + c];
        BOOST_TEST(std::abs(sum - results.at("out")[t * s.e + c]) < 1e-12);
      }
  }
}

// Within a block and between blocks keys may be exp(200) times larger than all before them: then these vanish beside
// 1e-4, and nothing overflows.
BOOST_AUTO_TEST_CASE(keys_that_dwarf_all_before_them) {
  const Sizes s{150, 150, 3, 2, 5};
  for (const Index place : {20, 64, 100}) {
    Tensors x = operands(s);
    for (Index c = 0; c < s.d; ++c) x["k"][place * s.d + c] = 60 * x["omega"][s.d + c];
    for (const bool causal : {false, true}) {
      const Tensors exact = run_mechanism<double>("performer", options(causal), x);
      check_near(exact.at("out"), defined(s, x, causal), 1e-11);
      check_same(run_mechanism<float>("performer", options(causal), x), exact, 2e-4, "float");
    }
  }
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
    BOOST_TEST(mechanism->memory(shape).saved == 2 * 4096 * (2 * 64 + 5));
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
  BOOST_TEST(refusal("performer", {}) == "[performer] features is 0; expected 1 to 65536, the rows of omega");
  BOOST_TEST(refusal("performer", {{"features", "-1"}}) ==
             "[performer] features is -1; expected 1 to 65536, the rows of omega");
}

BOOST_AUTO_TEST_SUITE_END()
