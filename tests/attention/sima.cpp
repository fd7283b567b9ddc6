// SimA on numbers worked out by hand, and where numbers are extreme. Gradients, costs and agreement of number types are
// checked over all mechanisms in tests/checks/cases.cpp.
#include "heed/attention/mechanism.h"
#include "heed/ops/attention.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

/// One head: out, and the gradients of q, k, v for a gradient of ones.
template <class T>
struct Result {
  Tensor<T> out, dq, dk, dv;
};

template <class T>
Tensor<T> tensor(Index tokens, Index channels, const std::vector<double>& values) {
  Tensor<T> x(Shape{1, 1, tokens, channels});
  std::transform(values.begin(), values.end(), x.begin(), [](double value) { return static_cast<T>(value); });
  return x;
}

template <class T>
Result<T> run(const OptionValues& options, const Tensor<T>& q, const Tensor<T>& k, const Tensor<T>& v) {
  const auto mechanism = make_mechanism("sima", options);
  Tape<T> tape;
  const Var<T> vq = tape.input(q.view()), vk = tape.input(k.view()), vv = tape.input(v.view());
  const Var<T> out = attention(*mechanism, vq, vk, vv, AttentionShape{});
  Tensor<T> ones(out.shape());
  std::fill(ones.begin(), ones.end(), T(1));
  const auto copy = [](View<const T> values) {
    Tensor<T> kept(values.shape());
    std::copy(values.begin(), values.end(), kept.begin());
    return kept;
  };
  Result<T> result{.out = copy(out.value()), .dq = {}, .dk = {}, .dv = {}};
  tape.backward(out, std::as_const(ones).view());
  result.dq = copy(tape.gradient(vq)), result.dk = copy(tape.gradient(vk)), result.dv = copy(tape.gradient(vv));
  return result;
}

template <class T>
void check_near(const Tensor<T>& got, const std::vector<double>& expected, double tolerance = 1e-14) {
  BOOST_REQUIRE(got.size() == static_cast<Index>(expected.size()));
  for (Index i = 0; i < got.size(); ++i) {
    const double e = expected[static_cast<std::size_t>(i)];
    BOOST_TEST(std::abs(static_cast<double>(got[i]) - e) <= tolerance * std::max(1.0, std::abs(e)),
               "element " << i << ": got " << got[i] << ", expected " << e);
  }
}

}  // namespace

BOOST_AUTO_TEST_SUITE(sima)

// q = (1, -3), k = (2, 2), v = (1, 5): qn = (1/4, -3/4), kn = (1/2, 1/2), S = 3, out = (3/4, -9/4).
// dout = (1, 1): dqn = (3, 3), dS = -1/2, dkn = (-1/2, -5/2), dv = (-1/4, -1/4).
// <qn, dqn> = -3/2: dq = ((3 + 3/2) / 4, (3 - 3/2) / 4); <kn, dkn> = -3/2: dk = ((-1/2 + 3/2) / 4, (-5/2 + 3/2) / 4).
BOOST_AUTO_TEST_CASE(by_hand) {
  const auto q = tensor<double>(2, 1, {1, -3}), k = tensor<double>(2, 1, {2, 2}), v = tensor<double>(2, 1, {1, 5});
  for (const char* order : {"auto", "qk_first", "kv_first"}) {
    const auto r = run<double>({{"order", order}}, q, k, v);
    check_near(r.out, {0.75, -2.25});
    check_near(r.dq, {4.5 / 4, 1.5 / 4});
    check_near(r.dk, {0.25, -0.25});
    check_near(r.dv, {-0.25, -0.25});
    check_near(run<double>({{"order", order}, {"norm", "none"}}, q, k, v).out, {12, -36});
    const double root = std::sqrt(80.0);
    check_near(run<double>({{"order", order}, {"norm", "l2"}}, q, k, v).out, {12 / root, -36 / root});
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
}

// The paper's 4.6 G multiply-adds for DeiT-S at 224 are made with q k^T first: 0.36 G of them are these two products.
BOOST_AUTO_TEST_CASE(no_exponentials_and_the_papers_count) {
  const AttentionShape deit_small{.heads = 6, .queries = 197, .keys = 197, .width = 64, .value_width = 64};
  const Cost cost = make_mechanism("sima", {{"order", "qk_first"}})->cost(deit_small);
  BOOST_TEST(cost.forward.exp == 0);
  BOOST_TEST(cost.attention_exp == 0);
  BOOST_TEST(12 * cost.forward_contractions.mul == 12 * 6 * 2 * 197 * 197 * 64);
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_tokens) {
  for (const char* order : {"auto", "qk_first", "kv_first"}) {
    const auto mechanism = make_mechanism("sima", {{"order", order}});
    const AttentionShape shape{.heads = 1, .queries = 4096, .keys = 4096, .width = 16, .value_width = 16};
    // qn, kn, their gradients; blocks of 64 rows where q k^T comes first
    BOOST_TEST(mechanism->saved(shape) <= 2 * 4096 * 16 + 32 + 16 * 16);
    BOOST_TEST(mechanism->scratch(shape) <= 2 * 4096 * 16 + (order[0] == 'q' ? 2 * 64 * 4096 : 16 * 16));
  }
}

// A channel of zeros stays zero and its gradient is dxn / 1e-12: large, but a number, and the same in float.
BOOST_AUTO_TEST_CASE(a_channel_of_zeros) {
  const std::vector<double> q{0, 1, 0, -2, 0, 0.5}, k{0.5, 0, -1, 0, 2, 0}, v{1, 2, 3, 4, 5, 6};
  for (const char* norm : {"l1", "l2"})
    for (const char* order : {"qk_first", "kv_first"}) {
      const OptionValues options{{"norm", norm}, {"order", order}};
      const auto exact = run(options, tensor<double>(3, 2, q), tensor<double>(3, 2, k), tensor<double>(3, 2, v));
      const auto rounded = run(options, tensor<float>(3, 2, q), tensor<float>(3, 2, k), tensor<float>(3, 2, v));
      check_near(rounded.out, {exact.out.begin(), exact.out.end()}, 1e-6);
      check_near(rounded.dq, {exact.dq.begin(), exact.dq.end()}, 1e-5);
      check_near(rounded.dk, {exact.dk.begin(), exact.dk.end()}, 1e-5);
      check_near(rounded.dv, {exact.dv.begin(), exact.dv.end()}, 1e-6);
    }
}

BOOST_AUTO_TEST_CASE(identical_tokens_and_large_numbers) {
  const std::vector<double> same{1e4, -3e4, 1e4, -3e4, 1e4, -3e4}, v{1, 2, 3, 4, 5, 6};
  const auto r = run<float>({}, tensor<float>(3, 2, same), tensor<float>(3, 2, same), tensor<float>(3, 2, v));
  // qn = kn = +-1/3: A = 2/9 everywhere
  check_near(r.out, {2, 8.0 / 3, 2, 8.0 / 3, 2, 8.0 / 3}, 1e-6);
}

BOOST_AUTO_TEST_CASE(options_are_refused_with_a_reason) {
  BOOST_CHECK_EXCEPTION(make_mechanism("sima", {{"norm", "l3"}}), Error, [](const Error& error) {
    return std::string(error.what()) == "[sima] norm is 'l3'; did you mean 'l1'?";
  });
  BOOST_CHECK_EXCEPTION(make_mechanism("sima", {{"causal", "true"}}), Error, [](const Error& error) {
    return std::string(error.what()) == "[sima] causal is 'true'; expected false, since it has no causal form";
  });
}

BOOST_AUTO_TEST_SUITE_END()
