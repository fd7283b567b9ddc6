// Costs that execution cannot confirm, since the executed operations only bound them: the contractions of backward
// passes, and those of AFT's windows. tests/checks/cases.cpp compares all other costs with the operations that run.
#include "heed/attention/capabilities/preparation.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

constexpr Index H = 3, N = 20, M = 12, d = 8, e = 6;
constexpr AttentionShape cross{.heads = H, .queries = N, .keys = M, .width = d, .value_width = e};

/// Returns the shape of 20 tokens on a grid of 4 x 5, with values as wide as keys.
AttentionShape square() {
  AttentionShape shape = cross;
  shape.keys = N, shape.value_width = d, shape.grid_height = 4, shape.grid_width = 5;
  return shape;
}

Cost cost_of(const char* name, const OptionValues& options, const AttentionShape& shape = cross) {
  return make_mechanism(name, options)->cost(shape);
}

/// Returns n multiplications and n additions.
Counts products(Index n) { return {.mul = n, .add = n}; }

}  // namespace

BOOST_AUTO_TEST_SUITE(attention_costs)

// A product has two gradients, each a product of the same size.
BOOST_AUTO_TEST_CASE(two_gradients_of_each_product) {
  const auto check = [](const char* name, const OptionValues& options, const AttentionShape& shape) {
    const Cost cost = cost_of(name, options, shape);
    BOOST_TEST(cost.forward_contractions.mul > 0);
    BOOST_TEST((cost.backward_contractions == 2 * cost.forward_contractions),
               name << ", " << options.size() << " options: " << cost.backward_contractions.mul << " mul, forward "
                    << cost.forward_contractions.mul);
  };
  for (const char* causal : {"false", "true"})
    for (const char* name : {"softmax", "pointwise", "synthesizer"}) check(name, {{"causal", causal}}, cross);
  for (const char* norm : {"l1", "l2", "none"})
    for (const char* order : {"qk_first", "kv_first"}) check("sima", {{"norm", norm}, {"order", order}}, cross);
  for (const char* iterations : {"0", "6"}) check("nystrom", {{"landmarks", "4"}, {"iterations", iterations}}, cross);
  check("efficient", {}, cross);
  check("linformer", {{"length", "5"}}, cross);
  check("lambda", {{"key_dim", "8"}, {"positions", "false"}}, cross);
  check("lambda", {{"key_dim", "8"}}, square());
  check("synthesizer", {{"kind", "random"}}, square());
  check("xca", {}, square());
  check("window", {{"window", "3"}}, square());
  check("window", {{"window", "1"}, {"dims", "2"}}, square());
}

// The products S = f(k)^T v and f(q) S have two gradients each. The keys' features are also summed, and the queries'
// features multiplied by this sum: the backward pass adds the sum's gradient to each key's, and the product with the
// sum has two gradients.
BOOST_AUTO_TEST_CASE(gradients_of_kernel_sums) {
  const auto expected = [](Index queries, Index keys, Index p, Index width) {
    return H * (products(2 * (queries + keys) * p * width) + products(2 * queries * p) + Counts{.add = keys * p});
  };
  BOOST_TEST((cost_of("linear", {}).backward_contractions == expected(N, M, d, e)));
  AttentionShape few = cross;
  few.queries = 10;  // the last one attends to 10 of 12 keys
  BOOST_TEST((cost_of("linear", {{"causal", "true"}}, few).backward_contractions == expected(10, 10, d, e)));
  BOOST_TEST((cost_of("cosformer", {}).backward_contractions == expected(N, M, d, e)));
  BOOST_TEST((cost_of("cosformer", {{"reweight", "1d"}}).backward_contractions == expected(N, M, 2 * d, e)));
  BOOST_TEST((cost_of("cosformer", {{"reweight", "2d"}}, square()).backward_contractions == expected(N, N, 4 * d, d)));
}

// Performer has the gradients of kernel sums. The features are a product with omega, and omega gets no gradient.
BOOST_AUTO_TEST_CASE(gradients_of_random_features) {
  constexpr Index m = 7;
  const Counts omega = products((N + M) * m * d), sums = products((N + M) * m * e), divisors = products(N * m),
               keys{.add = M * m};
  for (const char* causal : {"false", "true"}) {
    const Cost cost = cost_of("performer", {{"features", "7"}, {"causal", causal}});
    BOOST_TEST((cost.forward_contractions == H * (omega + sums + divisors + keys)));
    BOOST_TEST((cost.backward_contractions == H * (omega + 2 * (sums + divisors) + keys)));
  }
}

// For each channel of a pair of tokens, the backward pass adds one difference to the gradient of q and one to that of
// k; hardtanh also multiplies each.
BOOST_AUTO_TEST_CASE(gradients_of_distances) {
  const Index pairs = H * N * N;
  for (const char* score_grad : {"sign", "hardtanh"}) {
    const Cost cost = cost_of("adder", {{"score_grad", score_grad}}, square());
    BOOST_TEST(cost.distances == pairs * d);
    BOOST_TEST((cost.backward_contractions ==
                products(2 * pairs * d) + Counts{.mul = *score_grad == 's' ? 0 : 2 * pairs * d, .add = 4 * pairs * d}));
  }
}

// A token sees two chunks; the hash, a product with half as many columns as buckets, has no gradient.
BOOST_AUTO_TEST_CASE(gradients_of_chunks) {
  const Cost cost = cost_of("reformer", {{"rounds", "2"}, {"buckets", "6"}, {"chunk", "5"}}, square());
  const Index attention = 2 * N * 10 * (d + d);
  BOOST_TEST((cost.forward_contractions == H * products(attention + 2 * N * 3 * d)));
  BOOST_TEST((cost.backward_contractions == H * products(2 * attention)));
}

// A row of 5 tokens has 13 pairs in windows of 3, and a row of 3 tokens has 9 pairs in windows of 5. With outside=zero,
// a query whose window lacks some tokens adds the sum over these tokens as one more term. A term takes a product and an
// addition per channel, and an addition to the sum of the weights; in the backward pass, also a product for that sum.
// The gradient of a bias takes a product and an addition per channel for each pair, and one more addition.
BOOST_AUTO_TEST_CASE(windows_of_aft) {
  constexpr Index channels = 3;
  const auto check = [](const char* dims, const char* size, const char* outside, Index height, Index width, Index pairs,
                        Index terms) {
    const AttentionShape shape{.heads = 2,
                               .queries = height * width,
                               .keys = height * width,
                               .width = channels,
                               .value_width = channels,
                               .grid_height = height,
                               .grid_width = width};
    const Cost cost =
        cost_of("aft", {{"variant", "conv"}, {"dims", dims}, {"size", size}, {"outside", outside}}, shape);
    BOOST_TEST((cost.forward_contractions == 2 * terms * Counts{.mul = channels, .add = channels + 1}));
    BOOST_TEST((cost.backward_contractions == 2 * terms * Counts{.mul = channels + 1, .add = channels + 1} +
                                                  2 * pairs * Counts{.mul = channels, .add = channels + 1}));
  };
  check("1", "3", "masked", 1, 5, 13, 13);
  check("1", "3", "zero", 1, 5, 13, 13 + 5);
  check("1", "5", "zero", 1, 3, 9, 9);
  check("2", "3", "masked", 3, 5, 7 * 13, 7 * 13);
  check("2", "3", "zero", 4, 5, 10 * 13, 10 * 13 + 20);
}

// A factored bias is a product with `rank` terms for each visible pair, whether it is computed once per step or for
// each image.
BOOST_AUTO_TEST_CASE(factors_of_a_bias) {
  constexpr Index tokens = 17, rank = 3;
  for (const Index channels : {2, 3})
    for (const auto& [causal, pairs] : {std::pair<const char*, Index>{"false", 17 * 17}, {"true", 17 * 18 / 2}}) {
      const AttentionShape shape{.queries = tokens, .keys = tokens, .width = channels, .value_width = channels};
      const auto mechanism = make_mechanism("aft", {{"rank", "3"}, {"causal", causal}});
      BOOST_TEST((mechanism->memory(shape).prepared > 0) == (channels == 3));
      const Cost cost = mechanism->cost(shape) + preparation_cost(*mechanism, shape);
      BOOST_TEST((cost.forward_contractions == products(pairs * rank) + pairs * channels * Counts{.mul = 1, .add = 2}));
      BOOST_TEST(
          (cost.backward_contractions == products(2 * pairs * rank) + pairs * channels * Counts{.mul = 2, .add = 3}));
    }
}

// Numerators and denominators are counted for each pair in a window, and for each key that any query sees outside its
// window.
BOOST_AUTO_TEST_CASE(keys_outside_causal_and_masked_windows) {
  const auto check = [](OptionValues options, Index pairs, Index keys) {
    constexpr Index channels = 6;
    options["param"] = "dense";
    const Cost cost = cost_of("aft", options, {.queries = 9, .keys = 9, .width = channels, .value_width = channels});
    BOOST_TEST((cost.forward_contractions == (pairs + keys) * channels * Counts{.mul = 1, .add = 2}));
    BOOST_TEST((cost.backward_contractions ==
                pairs * channels * Counts{.mul = 2, .add = 3} + keys * channels * Counts{.mul = 2, .add = 2}));
  };
  const OptionValues window{{"variant", "local"}, {"window", "3"}};
  OptionValues causal = window, masked = window, both = window;
  causal["causal"] = both["causal"] = "true", masked["outside"] = both["outside"] = "masked";
  check(causal, 1 + 2 + 7 * 3, 6);
  check(masked, 9 + 2 * 8 + 2 * 7, 0);
  check(both, 1 + 2 + 7 * 3, 0);
  check({{"variant", "simple"}, {"causal", "true"}}, 0, 9);
  check({{"variant", "local"}, {"window", "9"}}, 81, 0);
  check({{"variant", "local"}, {"window", "8"}}, 79, 2);  // the first and the last key
}

// The convolution of v covers the grid without the class token: 3 x 3 products per channel of each patch.
BOOST_AUTO_TEST_CASE(convolution_of_values) {
  AttentionShape shape = square();
  shape.queries = shape.keys = N + 1, shape.class_token = 1, shape.value_width = e;
  const Cost without = cost_of("soft", {{"kernel", "exact"}}, shape),
             with = cost_of("soft", {{"kernel", "exact"}, {"vconv", "3"}}, shape);
  BOOST_TEST((with.forward_contractions == without.forward_contractions + H * products(N * e * 9)));
  BOOST_TEST((with.backward_contractions == without.backward_contractions + H * products(2 * N * e * 9)));
}

BOOST_AUTO_TEST_SUITE_END()
