// XCA compared with hand-calculated values, and for extreme inputs. tests/checks/cases.cpp checks gradients, costs and
// agreement of float with double for all mechanisms.
#include "support/definition.h"

#include "heed/attention/capabilities/map.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

Tensors operands(const std::vector<double>& q, const std::vector<double>& k, const std::vector<double>& v, double tau) {
  Tensor<double> temperature(Shape{1});
  temperature[0] = tau;
  return {{"q", tokens(2, 2, q)}, {"k", tokens(2, 2, k)}, {"v", tokens(2, 2, v)}, {"temperature", temperature}};
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

/// Computes A = softmax(tau qn^T kn) and out = v A^T.
DefinedHead definition(const DefinitionHead& x) {
  const Index N = x.N(), d = x.d();
  const double tau = x.x.at("temperature")[x.head];
  SlowMatrix S(d, d);
  for (Index a = 0; a < d; ++a)
    for (Index b = 0; b < d; ++b) {
      double dot = 0, of_q = 0, of_k = 0;
      for (Index n = 0; n < N; ++n)
        dot += x.q(n, a) * x.k(n, b), of_q += x.q(n, a) * x.q(n, a), of_k += x.k(n, b) * x.k(n, b);
      S(a, b) = tau * dot / std::sqrt(of_q) / std::sqrt(of_k);
    }
  const SlowMatrix A = slow_softmax(S);
  SlowMatrix out(N, d);
  for (Index n = 0; n < N; ++n)
    for (Index a = 0; a < d; ++a)
      for (Index b = 0; b < d; ++b) out(n, a) += A(a, b) * x.v(n, b);
  return {A, out};
}

}  // namespace

BOOST_AUTO_TEST_SUITE(xca)

BOOST_AUTO_TEST_CASE(by_definition) {
  for (const auto& [N, d] : {std::pair<Index, Index>{2, 5}, {9, 3}, {70, 4}, {5, 40}})
    check_definition("xca", {},
                     {{"q", random_tensor({2, 3, N, d}, 1)},
                      {"k", random_tensor({2, 3, N, d}, 2)},
                      {"v", random_tensor({2, 3, N, d}, 3)},
                      {"temperature", random_tensor({3}, 5, 2)},
                      {"dout", random_tensor({2, 3, N, d}, 4)}},
                     definition);
}

// Channels of q: (3, 4) / 5 = (0.6, 0.8) and (0, 2) / 2 = (0, 1); of k: (1, 0) and (6, 8) / 10 = (0.6, 0.8). Then
// S = ((0.6, 1), (0, 0.8)), and with tau = 2 the second of two channels weighs p = 1 / (1 + e^-0.8) in the first row of
// A, r = 1 / (1 + e^-1.6) in the second. As v's channels differ by 1 everywhere, out = v's first channel + (p, r).
// dout = 1: dv = dout A; the loss is 2 p + 2 r + 8, and dp/dtau = 0.4 p (1 - p), dr/dtau = 0.8 r (1 - r).
BOOST_AUTO_TEST_CASE(by_hand) {
  const Tensors x = operands({3, 0, 4, 2}, {1, 6, 0, 8}, {1, 2, 3, 4}, 2);
  const Tensors results = run_mechanism<double>("xca", {}, x);
  const double p = logistic(0.8), r = logistic(1.6);
  check_near(results.at("out"), {1 + p, 1 + r, 3 + p, 3 + r});
  check_near(results.at("map"), {1 - p, p, 1 - r, r});
  check_near(results.at("dv"), {2 - p - r, p + r, 2 - p - r, p + r});
  check_near(results.at("dtemperature"), {2 * 0.4 * p * (1 - p) + 2 * 0.8 * r * (1 - r)});
}

// A map over channels has one row and column per channel, whatever the number of tokens.
BOOST_AUTO_TEST_CASE(maps_are_of_channels) {
  const auto mechanism = make_mechanism("xca", {});
  const AttentionShape shape{.heads = 3, .queries = 50, .keys = 50, .width = 16, .value_width = 16};
  BOOST_TEST((map_shape(*mechanism, shape) == Shape{3, 16, 16}));
  BOOST_TEST((map_shape(*make_mechanism("softmax", {}), shape) == Shape{3, 50, 50}));
}

// A zero channel stays zero, and so does its row of S; the same row of A gives all channels of v equal weights.
BOOST_AUTO_TEST_CASE(a_channel_of_zeros) {
  const Tensors results = run_mechanism<double>("xca", {}, operands({3, 0, 4, 0}, {1, 6, 0, 8}, {1, 2, 3, 4}, 7));
  BOOST_TEST(results.at("out")[1] == 1.5);
  BOOST_TEST(results.at("out")[3] == 3.5);
  for (const char* gradient : {"dq", "dk", "dv", "dtemperature"})
    for (const double value : results.at(gradient)) BOOST_TEST(std::isfinite(value), gradient);
}

// Cosines are at most 1, so for any float temperature the rows of A sum to 1.
BOOST_AUTO_TEST_CASE(any_temperature) {
  for (const double tau : {-1e30, -3.0, 0.0, 1e30}) {
    const Tensors results = run_mechanism<float>("xca", {}, operands({3, 1, 4, 2}, {1, 6, -1, 8}, {1, 2, 3, 4}, tau));
    const Tensor<double>& map = results.at("map");
    for (Index row = 0; row < 2; ++row) BOOST_TEST(std::abs(map[2 * row] + map[2 * row + 1] - 1) < 1e-6, tau);
  }
}

BOOST_AUTO_TEST_CASE(what_papers_count) {
  const AttentionShape shape{.heads = 3, .queries = 197, .keys = 197, .width = 64, .value_width = 64};
  const Cost cost = make_mechanism("xca", {})->cost(shape);
  BOOST_TEST(cost.forward_contractions.mul == 3 * 2 * 197 * 64 * 64);
  BOOST_TEST(cost.attention_exp == 3 * 64 * 64);
}

BOOST_AUTO_TEST_CASE(refused) {
  BOOST_TEST(
      refusal("xca", {}, {.queries = 5, .keys = 4, .width = 3, .value_width = 3}) ==
      "[xca] there are 5 queries and 4 keys; the numbers must be equal, since channels are compared token by token");
  BOOST_TEST(refusal("xca", {}, {.queries = 5, .keys = 5, .width = 3, .value_width = 4}) ==
             "[xca] k has 3 channels, v 4; they must match");
}

BOOST_AUTO_TEST_SUITE_END()
