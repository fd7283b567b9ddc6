// Reformer against its definition, round by round and pair by pair. Small shapes' gradients, costs and agreement of
// number types are checked over all mechanisms in tests/checks/cases.cpp.
#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace heed;

namespace {

struct Sizes {
  Index N, d, e, rounds, buckets, chunk;
};

Tensors operands(const Sizes& s) {
  return {{"q", random_tensor({1, 1, s.N, s.d}, 1, 2)},
          {"v", random_tensor({1, 1, s.N, s.e}, 3)},
          {"rotations", random_tensor({s.rounds, s.d, s.buckets / 2}, 4)},
          {"dout", random_tensor({1, 1, s.N, s.e}, 5)}};
}

OptionValues options(const Sizes& s) { return {{"chunk", std::to_string(s.chunk)}}; }

/// Tokens of round r in the order of their buckets.
std::vector<Index> order_of(const Sizes& s, const Tensors& x, Index r) {
  std::vector<Index> buckets, order(static_cast<std::size_t>(s.N));
  for (Index t = 0; t < s.N; ++t) {
    std::vector<double> u;
    for (Index b = 0; b < s.buckets / 2; ++b) {
      double sum = 0;
      for (Index c = 0; c < s.d; ++c)
        sum += x.at("q")[t * s.d + c] * x.at("rotations")[(r * s.d + c) * s.buckets / 2 + b];
      u.push_back(sum);
    }
    for (Index b = 0; b < s.buckets / 2; ++b) u.push_back(-u[static_cast<std::size_t>(b)]);
    buckets.push_back(std::max_element(u.begin(), u.end()) - u.begin());
  }
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(), [&](Index a, Index b) {
    return buckets[static_cast<std::size_t>(a)] < buckets[static_cast<std::size_t>(b)];
  });
  return order;
}

std::vector<double> defined(const Sizes& s, const Tensors& x) {
  const auto q = [&](Index t, Index c) { return x.at("q")[t * s.d + c]; };
  const auto score = [&](Index i, Index j) {
    if (i == j) return -5e4;
    double dot = 0, square = 0;
    for (Index c = 0; c < s.d; ++c) dot += q(i, c) * q(j, c), square += q(j, c) * q(j, c);
    return dot / std::max(std::sqrt(square), 1e-12) / std::sqrt(static_cast<double>(s.d));
  };
  std::vector<std::vector<double>> means(static_cast<std::size_t>(s.N)), logs(means);
  for (Index r = 0; r < s.rounds; ++r) {
    const std::vector<Index> order = order_of(s, x, r);
    for (Index p = 0; p < s.N; ++p) {
      const auto i = static_cast<std::size_t>(order[static_cast<std::size_t>(p)]);
      const Index first = (p / s.chunk - 1) * s.chunk;
      std::vector<Index> keys;
      for (Index j = first; j < first + 2 * s.chunk; ++j)
        keys.push_back(order[static_cast<std::size_t>((j + s.N) % s.N)]);
      double largest = -1e300, sum = 0;
      for (const Index j : keys) largest = std::max(largest, score(static_cast<Index>(i), j));
      for (const Index j : keys) sum += std::exp(score(static_cast<Index>(i), j) - largest);
      for (Index c = 0; c < s.e; ++c) {
        double mean = 0;
        for (const Index j : keys)
          mean += std::exp(score(static_cast<Index>(i), j) - largest) / sum * x.at("v")[j * s.e + c];
        means[i].push_back(mean);
      }
      logs[i].push_back(largest + std::log(sum));
    }
  }
  std::vector<double> out;
  for (std::size_t i = 0; i < means.size(); ++i)
    for (Index c = 0; c < s.e; ++c) {
      double sum = 0, weights = 0;
      for (std::size_t r = 0; r < logs[i].size(); ++r) {
        const double weight = std::exp(logs[i][r] - logs[i][0]);
        sum += weight * means[i][r * static_cast<std::size_t>(s.e) + static_cast<std::size_t>(c)];
        weights += weight;
      }
      out.push_back(sum / weights);
    }
  return out;
}

double loss(const Sizes& s, const Tensors& x) {
  const std::vector<double> out = defined(s, x);
  double sum = 0;
  for (std::size_t i = 0; i < out.size(); ++i) sum += out[i] * x.at("dout")[static_cast<Index>(i)];
  return sum;
}

const std::vector<Sizes> all_sizes{
    {24, 3, 2, 2, 6, 4}, {24, 3, 2, 3, 2, 12}, {20, 4, 3, 1, 4, 20}, {21, 2, 3, 4, 8, 1}};

}  // namespace

BOOST_AUTO_TEST_SUITE(reformer)

BOOST_AUTO_TEST_CASE(as_defined) {
  for (const Sizes& s : all_sizes) {
    const Tensors x = operands(s), results = run_mechanism<double>("reformer", options(s), x);
    check_near(results.at("out"), defined(s, x), 1e-12);
    for (const char* name : {"q", "v"})
      for (Index i = 0; i < x.at(name).size(); i += 5) {
        Tensors more = x, less = x;
        const double step = 1e-5;
        more[name][i] += step, less[name][i] -= step;
        const double expected = (loss(s, more) - loss(s, less)) / (2 * step);
        const double got = results.at(std::string("d") + name)[i];
        BOOST_TEST(std::abs(got - expected) <= 1e-7 * std::max(1.0, std::abs(expected)),
                   name << "[" << i << "]: got " << got << ", expected " << expected);
      }
  }
}

BOOST_AUTO_TEST_CASE(the_map_multiplies_v) {
  for (const Sizes& s : all_sizes) {
    const Tensors x = operands(s), results = run_mechanism<double>("reformer", options(s), x);
    for (Index t = 0; t < s.N; ++t)
      for (Index c = 0; c < s.e; ++c) {
        double sum = 0;
        for (Index i = 0; i < s.N; ++i) sum += results.at("map")[t * s.N + i] * x.at("v")[i * s.e + c];
        BOOST_TEST(std::abs(sum - results.at("out")[t * s.e + c]) < 1e-12);
      }
  }
}

// Two tokens with one direction: each sees the other alone, since it would see itself with e^-50000 only.
BOOST_AUTO_TEST_CASE(a_token_sees_itself_only_if_nothing_else) {
  const Tensor<double> rotations(Shape{1, 1, 1}, {1});
  const Tensors two =
      run_mechanism<double>("reformer", {{"chunk", "2"}},
                            {{"q", tokens(2, 1, {1, 3})}, {"v", tokens(2, 1, {5, 7})}, {"rotations", rotations}});
  check_near(two.at("out"), {7, 5});
  // As keys both are 1, so all scores of a query are alike, and moving it moves nothing.
  check_near(two.at("dq"), {0, 0});
}

// A token of zeros has the key 0, and the gradient of dividing by 1e-12.
BOOST_AUTO_TEST_CASE(a_token_of_zeros) {
  const Sizes s{24, 3, 2, 2, 6, 4};
  Tensors x = operands(s);
  for (Index c = 0; c < s.d; ++c) x["q"][5 * s.d + c] = 0;
  const Tensors results = run_mechanism<double>("reformer", options(s), x);
  check_near(results.at("out"), defined(s, x), 1e-12);
  for (const double value : results.at("dq")) BOOST_TEST(std::isfinite(value));
}

BOOST_AUTO_TEST_CASE(float_agrees_with_double) {
  for (const Sizes& s : {Sizes{256, 16, 16, 2, 16, 64}, Sizes{130, 8, 9, 3, 4, 13}}) {
    const Tensors x = operands(s);
    check_same(run_mechanism<float>("reformer", options(s), x), run_mechanism<double>("reformer", options(s), x), 1e-5,
               "float");
  }
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  const auto mechanism = make_mechanism("reformer", {{"rounds", "2"}, {"buckets", "32"}, {"chunk", "64"}});
  const AttentionShape shape{.heads = 1, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
  BOOST_TEST(mechanism->memory(shape).saved == 4096 * (1 + 16 + 2 * 4));
  BOOST_TEST(mechanism->memory(shape).scratch <= 4160 * (8 * 16 + 2 * 16 + 16 + 2) + 64 * 300);
}

BOOST_AUTO_TEST_CASE(what_papers_count) {
  const AttentionShape shape{.heads = 3, .queries = 60, .keys = 60, .width = 16, .value_width = 16};
  const Cost cost = make_mechanism("reformer", {{"rounds", "2"}, {"buckets", "6"}, {"chunk", "10"}})->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * 2 * (60 * 16 * 3 + 4 * 60 * 10 * 16));
}

BOOST_AUTO_TEST_CASE(refused) {
  const AttentionShape shape{.queries = 12, .keys = 12, .width = 3, .value_width = 3};
  const auto said = [&](const char* rounds, const char* buckets, const char* chunk) {
    return refusal("reformer", {{"rounds", rounds}, {"buckets", buckets}, {"chunk", chunk}}, shape);
  };
  BOOST_TEST(said("2", "4", "3") == "");
  BOOST_TEST(said("2", "0", "3") == "");
  BOOST_TEST(said("0", "4", "3") == "[reformer] rounds is 0; expected 1 to 1024, as many as rotations");
  BOOST_TEST(said("2", "3", "3") == "[reformer] buckets is 3; expected an even number, or 0 for one per chunk");
  BOOST_TEST(said("2", "14", "3") == "[reformer] buckets is 14; expected at most 12, the tokens there are");
  BOOST_TEST(said("2", "4", "5") == "[reformer] chunk is 5; it must divide the 12 tokens");
  BOOST_TEST(said("2", "4", "0") == "[reformer] chunk is 0; it must divide the 12 tokens");
  BOOST_TEST(refusal("reformer", {{"rounds", "2"}, {"chunk", "3"}}, shape) ==
             "[reformer] buckets is -1; expected an even number, or 0 for one per chunk");
}

BOOST_AUTO_TEST_SUITE_END()
