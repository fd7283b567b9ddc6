// Point-wise attention on numbers worked out by hand. Gradients, costs and agreement of number types are checked over
// all mechanisms in tests/checks/cases.cpp, the functions themselves in tests/kernels/pointwise.cpp.
#include "heed/attention/mechanism.h"
#include "heed/ops/attention.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

/// One head of width 1 and one image: out, and the gradients of q, k, v for a gradient of ones.
struct Result {
  std::vector<double> out, dq, dk, dv;
};

template <class T>
Result run(const OptionValues& options, const std::vector<T>& q, const std::vector<T>& k, const std::vector<T>& v) {
  const auto mechanism = make_mechanism("pointwise", options);
  Tape<T> tape;
  const auto input = [&](const std::vector<T>& x) {
    return tape.input(View<const T>(x.data(), Shape{1, 1, static_cast<Index>(x.size()), 1}));
  };
  const Var<T> vq = input(q), vk = input(k), vv = input(v);
  const Var<T> out = attention(*mechanism, vq, vk, vv, AttentionShape{});
  const std::vector<T> ones(q.size(), T(1));
  const auto copy = [](View<const T> x) { return std::vector<double>(x.begin(), x.end()); };
  Result result{.out = copy(out.value()), .dq = {}, .dk = {}, .dv = {}};
  tape.backward(out, View<const T>(ones.data(), out.shape()));
  result.dq = copy(tape.gradient(vq)), result.dk = copy(tape.gradient(vk)), result.dv = copy(tape.gradient(vv));
  return result;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected, double tolerance = 1e-14) {
  BOOST_REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    BOOST_TEST(std::abs(got[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])),
               "element " << i << ": got " << got[i] << ", expected " << expected[i]);
}

const std::vector<double> q{1, -2}, k{3, -1}, v{5, 7};  // S = [[3, -1], [-6, 2]]

}  // namespace

BOOST_AUTO_TEST_SUITE(pointwise_attention)

// A = [[3, 0], [0, 2]] / 2, out = (15/2, 7). dv = (3/2, 1); dA = [[5, 7], [5, 7]],
// dS = [[5, 0], [0, 7]] / 2, dq = (15/2, -7/2), dk = (5/2, -7).
BOOST_AUTO_TEST_CASE(relu_by_hand) {
  const Result r = run<double>({}, q, k, v);
  check_near(r.out, {7.5, 7});
  check_near(r.dv, {1.5, 1});
  check_near(r.dq, {7.5, -3.5});
  check_near(r.dk, {2.5, -7});
}

BOOST_AUTO_TEST_CASE(alpha_and_causal) {
  check_near(run<double>({{"alpha", "0"}}, q, k, v).out, {15, 14});
  const double root = std::sqrt(2.0);
  check_near(run<double>({{"alpha", "0.5"}}, q, k, v).out, {15 / root, 14 / root});
  // The first query sees the first key only; the divisor stays 2.
  const Result r = run<double>({{"causal", "true"}, {"phi", "identity"}}, q, k, v);
  check_near(r.out, {7.5, (-30 + 14) / 2.0});
  check_near(r.dv, {(3 - 6) / 2.0, 1});
  check_near(r.dq, {7.5, (15 - 7) / 2.0});
  check_near(r.dk, {(5 - 10) / 2.0, -7});
}

// Keys that no query sees get a gradient, of zero.
BOOST_AUTO_TEST_CASE(causal_with_more_keys_than_queries) {
  const Result r = run<double>({{"causal", "true"}}, {1}, {3, 4, 5}, {6, 7, 8});
  check_near(r.out, {6});
  check_near(r.dk, {2, 0, 0});
  check_near(r.dv, {1, 0, 0});
}

BOOST_AUTO_TEST_CASE(relu6_is_flat_above_6) {
  const Result r = run<double>({{"phi", "relu6"}}, {2, 2, 2}, {1, 3, 4}, {1, 1, 1});  // rows (2, 6, 8)
  check_near(r.out, {14.0 / 3, 14.0 / 3, 14.0 / 3});
  check_near(r.dq, {1.0 / 3, 1.0 / 3, 1.0 / 3});  // key 1 alone: 6 is a kink and 8 is beyond
  check_near(r.dk, {2, 0, 0});
}

// Scores of +-1e4 and more than one block of queries.
BOOST_AUTO_TEST_CASE(large_scores_in_float) {
  std::vector<double> in[3];
  std::vector<float> in_float[3];
  for (int operand = 0; operand < 3; ++operand)
    for (int i = 0; i < 150; ++i) {
      in_float[operand].push_back(static_cast<float>((operand == 2 ? 1 : 100) * std::sin(0.37 * i + operand)));
      in[operand].push_back(in_float[operand].back());
    }
  for (const char* phi : {"relu", "relu2", "gelu", "softplus", "identity", "relu6", "sigmoid"}) {
    const Result exact = run<double>({{"phi", phi}}, in[0], in[1], in[2]);
    const Result rounded = run<float>({{"phi", phi}}, in_float[0], in_float[1], in_float[2]);
    const auto agree = [&](const std::vector<double>& got, const std::vector<double>& expected) {
      double most = 0;
      for (const double x : expected) most = std::max(most, std::abs(x));
      for (std::size_t i = 0; i < got.size(); ++i) BOOST_TEST(std::abs(got[i] - expected[i]) <= 1e-5 * most, phi);
    };
    agree(rounded.out, exact.out);
    agree(rounded.dq, exact.dq);
    agree(rounded.dk, exact.dk);
    agree(rounded.dv, exact.dv);
  }
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  const auto mechanism = make_mechanism("pointwise", {});
  const AttentionShape shape{.heads = 2, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
  BOOST_TEST(mechanism->saved(shape) == 0);
  BOOST_TEST(mechanism->scratch(shape) == 2 * 64 * 4096);
}

BOOST_AUTO_TEST_CASE(options_are_refused_with_a_reason) {
  const auto refused = [](const OptionValues& options, const std::string& message) {
    BOOST_CHECK_EXCEPTION(make_mechanism("pointwise", options)->check({}), Error,
                          [&](const Error& error) { return error.what() == message; });
  };
  refused({{"phi", "relu7"}}, "[pointwise] phi is 'relu7'; did you mean 'relu'?");
  refused({{"alpha", "1.5"}}, "[pointwise] alpha is 1.5; expected 0 to 1");
  refused({{"alpha", "nan"}}, "[pointwise] alpha is nan; expected 0 to 1");
}

BOOST_AUTO_TEST_SUITE_END()
