// Errors of operations on operands that do not fit: each names the operation, the operand, and both shapes.
#include "heed/ops/activation.h"
#include "heed/ops/attention.h"
#include "heed/ops/attention_capabilities.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/conv2d.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/dino.h"
#include "heed/ops/dropout.h"
#include "heed/ops/elementary/losses.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/elementary/shapes.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"
#include "heed/ops/patch_embedding.h"
#include "heed/ops/scale_channels.h"
#include "heed/ops/sequences.h"
#include "heed/ops/tokens.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

/// A tape in training, and operands of ones.
struct Ones {
  Tape<double> tape{{.training = true}};
  Var<double> of(const Shape& shape) {
    return tape.constant(shape, [](Index) { return 1; });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(ops_refusals, Ones)

BOOST_AUTO_TEST_CASE(windows_that_do_not_fit) {
  const auto dense = [&](const Shape& x, const Shape& weight, const ConvGrid& grid) {
    return error_of([&] { conv2d(of(x), of(weight), {}, grid); }, "[conv2d] ");
  };
  const Shape x{2, 20, 3}, weight{5, 3, 3, 3};
  BOOST_TEST(dense(x, weight, {4, 5, 2, 2}) == "no error");
  BOOST_TEST(dense({2, 12, 3}, weight, {4, 5}) == "x has shape [2, 12, 3]; expected [B, 4 * 5, C]");
  BOOST_TEST(dense(x, {5, 2, 3, 3}, {4, 5}) == "weight has shape [5, 2, 3, 3]; expected [O, 3, K, K]");
  BOOST_TEST(dense(x, {5, 3, 3, 2}, {4, 5}) == "weight has shape [5, 3, 3, 2]; expected [O, 3, K, K]");
  const std::string expected = "; expected a stride of at least 1, a padding from 0 to 2";
  BOOST_TEST(dense(x, weight, {4, 5, 0, 1}) == "stride 0, padding 1" + expected);
  BOOST_TEST(dense(x, weight, {4, 5, 1, 3}) == "stride 1, padding 3" + expected);
  BOOST_TEST(dense({2, 8, 3}, weight, {4, 2}) == "a 3x3 window does not fit a grid of 4x2 with padding 0");
  BOOST_TEST(dense({2, 8, 3}, weight, {2, 4}) == "a 3x3 window does not fit a grid of 2x4 with padding 0");
  BOOST_TEST(error_of([&] {
               conv2d(of(x), of(weight), of({3}), {4, 5});
             }) == "[conv2d] bias has shape [3]; expected [5]");
  BOOST_TEST(error_of([&] {
               depthwise_conv2d(of(x), of({5, 1, 3, 3}), {}, {4, 5});
             }) == "[depthwise_conv2d] weight has shape [5, 1, 3, 3]; expected [3, 1, K, K]");
  BOOST_TEST(error_of([&] {
               depthwise_conv2d(of(x), of(weight), {}, {4, 5});
             }) == "[depthwise_conv2d] weight has shape [5, 3, 3, 3]; expected [O, 1, K, K]");
  BOOST_TEST(error_of([&] { pixel_rows(of(x)); }) ==
             "[pixel_rows] the images have shape [2, 20, 3]; expected [B, C, h, w]");
  const auto patches = [&](const Shape& of_weight) {
    return error_of([&] { patch_embedding(of({2, 3, 6, 8}), of(of_weight), {}); }, "[patch_embedding] ");
  };
  BOOST_TEST(patches({5, 3, 3, 2}) == "no error");
  BOOST_TEST(patches({5, 2, 3, 2}) ==
             "x has shape [2, 3, 6, 8], weight [5, 2, 3, 2]; expected [B, C, H, W] and [D, C, p, q]");
  BOOST_TEST(patches({5, 3, 4, 2}) == "patches of 4x2 do not divide an image of 6x8");
  BOOST_TEST(patches({5, 3, 2, 3}) == "patches of 2x3 do not divide an image of 6x8");
}

// Errors of fused operations begin with the operations' own names.
BOOST_AUTO_TEST_CASE(rows_that_do_not_fit) {
  const auto x = of({5, 3}), weight = of({2, 3}), three = of({3}), two = of({2});
  BOOST_TEST(error_of([&] {
               linear(of({5, 4}), weight);
             }) == "[linear] x has 4 channels, weight [2, 3] expects 3; they must match");
  BOOST_TEST(error_of([&] {
               gelu_linear(of({5, 4}), weight);
             }) == "[gelu_linear] x has 4 channels, weight [2, 3] expects 3; they must match");
  BOOST_TEST(error_of([&] { linear(x, weight, three); }) == "[linear] bias has shape [3]; expected [2]");
  BOOST_TEST(error_of([&] { linear(x, weight, two, x); }) == "[linear] the residual has shape [5, 3]; expected [5, 2]");
  BOOST_TEST(error_of([&] { layer_norm(x, two, three); }) ==
             "[layer_norm] x has rows of 3, gamma has shape [2], beta [3]; expected [3]");
  BOOST_TEST(error_of([&] { layer_norm_linear(x, three, two, weight); }) ==
             "[layer_norm_linear] x has rows of 3, gamma has shape [3], beta [2]; expected [3]");
  BOOST_TEST(error_of([&] { scale_channels(x, two); }) == "[scale_channels] gamma has shape [2]; expected [3]");
  BOOST_TEST(error_of([&] { scale_channels(x, three, weight); }) ==
             "[scale_channels] the residual has shape [2, 3]; expected [5, 3]");
  BOOST_TEST(error_of([&] { dropout(x, 1, 0); }) == "[dropout] the rate is 1; expected 0 <= rate < 1");
  BOOST_TEST(error_of([&] { stochastic_depth(x, -0.5, 0); }) ==
             "[stochastic_depth] the rate is -0.5; expected 0 <= rate < 1");
}

BOOST_AUTO_TEST_CASE(norms_that_do_not_fit) {
  using Parts = std::vector<NormPart<double>>;
  const auto parts = [&](const Parts& list, Var<double> residual = {}) {
    return error_of(
        [&] {
          layer_norm_parts(of({4, 5}), std::span<const NormPart<double>>(list), residual);
        },
        "[layer_norm_parts] ");
  };
  const NormPart<double> two{of({2}), of({2})}, three{of({3}), of({3})}, mixed{of({3}), of({2})};
  BOOST_TEST(parts({two, three}) == "no error");
  BOOST_TEST(parts({three, three}) == "x has rows of 5, the parts add up to 6; they must match");
  BOOST_TEST(parts({two, mixed}) == "gamma has shape [3], beta [2]; expected two vectors of equal length");
  BOOST_TEST(parts({}) == "0 parts; expected 1 to 3");
  BOOST_TEST(parts({two, two, two, two}) == "4 parts; expected 1 to 3");
  BOOST_TEST(parts({two, three}, of({3, 5})) == "the residual has shape [3, 5]; expected [4, 5]");

  // Two heads of q with three channels, and one head of k with two and of v with four.
  const AttentionLayout layout{2, 3, 2, 4, 1};
  const auto heads = [&](Index width, const NormPart<double>& q, const NormPart<double>& k) {
    return error_of([&] { head_norm(of({4, width}), layout, q, k); }, "[head_norm] ");
  };
  BOOST_TEST(heads(12, three, two) == "no error");
  BOOST_TEST(heads(18, three, two) == "x has rows of 18; expected 12");
  BOOST_TEST(heads(12, two, two) == "gamma of q has shape [2], beta [2]; expected [3]");
  BOOST_TEST(heads(12, three, mixed) == "gamma of k has shape [3], beta [2]; expected [2]");

  Tensor<double> mean(Shape{3}), variance(Shape{3});
  const auto batch = [&](const Shape& x, Index width, Index group) {
    return error_of(
        [&] { batch_norm(of(x), of({width}), of({width}), mean.view(), variance.view(), {.group = group}); },
        "[batch_norm] ");
  };
  BOOST_TEST(batch({6, 1, 3}, 3, 2) == "no error");
  BOOST_TEST(batch({6, 1, 3}, 3, 4) == "groups of 4 images do not divide a batch of 6");
  BOOST_TEST(batch({6, 1, 3}, 2, 0) == "a parameter has shape [2]; expected [3]");
  BOOST_TEST(batch({3}, 3, 0) == "x has shape [3]; expected [B, ..., C] with at least 1 image");
  for (const Index group : {1, 0})
    BOOST_TEST(batch({group == 1 ? 6 : 1, 1, 3}, 3, group) == "training needs at least two values per channel");
  BOOST_TEST(batch({1, 2, 3}, 3, 0) == "no error");
}

BOOST_AUTO_TEST_CASE(tokens_that_do_not_fit) {
  const auto x = of({2, 4, 3});
  BOOST_TEST(error_of([&] {
               embed_tokens(x, of({1, 2, 4}), {});
             }) == "[embed_tokens] prefix has shape [1, 2, 4]; expected [1, 2, 3]");
  BOOST_TEST(error_of([&] {
               embed_tokens(x, of({1, 2, 3}), of({1, 4, 3}));
             }) == "[embed_tokens] position has shape [1, 4, 3]; expected [1, 6, 3]");
  BOOST_TEST(error_of([&] { select_token(x, 3); }) == "no error");
  for (const Index token : {-1, 4})
    BOOST_TEST(error_of([&] { select_token(x, token); }) ==
               fmt::format("[select_token] x has shape [2, 4, 3]; it has no token {}", token));
  BOOST_TEST(to_string(skip_tokens(x, 4).shape()) == "[2, 0, 3]");
  BOOST_TEST(error_of([&] { skip_tokens(x, 5); }) == "[skip_tokens] x has shape [2, 4, 3]; cannot skip 5 tokens");
  BOOST_TEST(error_of([&] {
               join_tokens(of({3, 3}), x);
             }) == "[join_tokens] first has shape [3, 3], rest [2, 4, 3]; expected [B, 1, D]");
  BOOST_TEST(error_of([&] { mean_tokens(of({4, 3})); }) == "[mean_tokens] x has shape [4, 3]; expected [B, N, D]");
  BOOST_TEST(error_of([&] {
               interpolate_positions(of({1, 11, 3}), 1, 3, 2);
             }) == "[interpolate_positions] x has shape [1, 11, 3]; expected [1, 10, D], a grid of 3 x 3");
}

// The position embedding must have a row for each token of the longest sequence, here the first.
BOOST_AUTO_TEST_CASE(sequences_that_do_not_fit) {
  const TokenRows sequences[] = {{nullptr, 0, 4}, {nullptr, 4, 2}};
  const auto embedded = [&](const Shape& front, const Shape& position) {
    return error_of(
        [&] {
          embed_sequences(std::span(sequences), of({7, 3}), of(front), of(position));
        },
        "[embed_sequences] ");
  };
  BOOST_TEST(embedded({1, 1, 4}, {1, 4, 3}) == "front has shape [1, 1, 4]; expected [1, 1, 3]");
  BOOST_TEST(embedded({1, 1, 3}, {1, 3, 3}) == "position has shape [1, 3, 3]; expected [1, P, 3] with P at least 4");
  BOOST_TEST(embedded({1, 1, 3}, {1, 4, 2}) == "position has shape [1, 4, 2]; expected [1, P, 3] with P at least 4");
  BOOST_TEST(error_of([&] {
               pair_features(of({3, 4}), true);
             }) == "[pair_features] x has shape [3, 4]; expected [2B, D]");
  const std::string of_pass = "; expected the rows of the pass's sequences";
  BOOST_TEST(error_of([&] {
               pool_sequences(of({1, 5, 3}), SequencePool::mean);
             }) == "[pool_sequences] x has shape [1, 5, 3]" + of_pass);
  const Index starts[] = {0, 3, 5};
  tape.divide_rows({starts, 0, 3});
  BOOST_TEST(error_of([&] { pool_sequences(of({1, 5, 3}), SequencePool::last); }) == "no error");
  BOOST_TEST(error_of([&] {
               pool_sequences(of({1, 6, 3}), SequencePool::last);
             }) == "[pool_sequences] x has shape [1, 6, 3]" + of_pass);
}

BOOST_AUTO_TEST_CASE(losses_that_do_not_fit) {
  const auto logits = of({3, 5});
  const auto soft = [&](const Shape& targets, double smoothing, Index divisor) {
    return error_of([&] { cross_entropy(logits, of(targets).value(), smoothing, divisor); }, "[cross_entropy] ");
  };
  BOOST_TEST(soft({3, 5}, 0, 1) == "no error");
  BOOST_TEST(soft({3, 4}, 0, 1) == "logits have shape [3, 5], targets [3, 4]; expected [B, C] for both");
  BOOST_TEST(soft({3, 5}, 1, 1) == "label smoothing is 1; expected 0 <= smoothing < 1");
  BOOST_TEST(soft({3, 5}, -0.5, 1) == "label smoothing is -0.5; expected 0 <= smoothing < 1");
  BOOST_TEST(soft({3, 5}, 0, 0) == "the divisor is 0; expected at least 1");
  const auto labelled = [&](const std::vector<int>& labels) {
    return error_of([&] { cross_entropy(logits, std::span<const int>(labels)); }, "[cross_entropy] ");
  };
  BOOST_TEST(labelled({0, 4, 2}) == "no error");
  BOOST_TEST(labelled({0, 4}) == "logits have shape [3, 5], 2 labels are given; expected [B, C] and B labels");
  BOOST_TEST(labelled({0, -1, 2}) == "label -1; expected 0 to 4");  // unlike in sequences, -1 excludes no row
  const int label = 2;
  BOOST_TEST(error_of([&] {
               label_cross_entropy(of({1, 5}), &label, 0);
             }) == "[label_cross_entropy] the divisor is 0; expected at least 1");
  const auto dino = [&](const Shape& of_student, double temperature, Index divisor) {
    return error_of([&] { dino_loss(of(of_student), of({3, 2, 5}).value(), temperature, divisor); }, "[dino_loss] ");
  };
  BOOST_TEST(dino({6, 5}, 0.1, 1) == "no error");
  for (const Index rows_given : {3, 7})
    BOOST_TEST(dino({rows_given, 5}, 0.1, 1) ==
               fmt::format("logits have shape [{}, 5], q [3, 2, 5]; expected [V B, K] and [B, 2, K]", rows_given));
  const std::string expected = "; expected a temperature above 0, a divisor of at least 1";
  BOOST_TEST(dino({6, 5}, 0, 7) == "temperature 0, divisor 7" + expected);
  BOOST_TEST(dino({6, 5}, 0.5, 0) == "temperature 0.5, divisor 0" + expected);
  BOOST_TEST(error_of([&] {
               join_rows(of({2, 3}), of({2, 4}));
             }) == "[join_rows] a has shape [2, 3], b [2, 4]; expected [m, D] and [n, D]");
}

BOOST_AUTO_TEST_CASE(shapes_of_elementary_operations) {
  const auto x = of({2, 3});
  BOOST_TEST(error_of([&] {
               max(of({0, 3}), {0});
             }) == "[max] shape [0, 3] has no elements along these axes; at least one is needed");
  BOOST_TEST(error_of([&] { reshape(x, {1, 1, 1, 1, 1, 2, 3}); }) == "[reshape] 7 axes; at most 6 are supported");
  BOOST_TEST(to_string(reshape(of({0, 3}), {0, -1}).shape()) == "[0, 0]");
  BOOST_TEST(error_of([&] { swap_axes(x, 0, 2); }) == "[swap_axes] shape [2, 3] has no axis 2");
  BOOST_TEST(error_of([&] { join(std::span<const Var<double>>(), 0); }) ==
             "[join] no tensors are given; at least one is needed");
  BOOST_TEST(error_of([&] { stack({x, x}, 3); }) == "[stack] tensors of shape [2, 3] cannot be stacked along axis 3");
  const auto most = of({1, 1, 1, 1, 2, 3});
  BOOST_TEST(error_of([&] {
               stack({most, most});
             }) == "[stack] tensors of shape [1, 1, 1, 1, 2, 3] already have 6 axes, the maximum");
  BOOST_TEST(error_of([&] { slice(x, 1, 2, 1); }) == "[slice] indices 2 to 1 of axis 1; the axis has 3 elements");
  BOOST_TEST(error_of([&] { gather_rows(x, {-1}); }) == "[gather_rows] index -1; expected 0 to 1 for shape [2, 3]");
}

BOOST_AUTO_TEST_CASE(operands_of_attention_that_do_not_fit) {
  const AttentionLayout layout{2, 2, 3, 4};  // rows of 2 (2 + 3 + 4) = 18
  BOOST_TEST(error_of([&] {
               packed_operands(of({2, 5, 12}), layout);
             }) == "[attention] x has shape [2, 5, 12]; expected [B, N, 18]");
  const auto apart = [&](const Shape& q, const Shape& k, const Shape& v) {
    return error_of([&] { operands_apart(of(q), of(k), of(v), layout); }, "[attention] ");
  };
  BOOST_TEST(apart({2, 7, 4}, {2, 5, 6}, {2, 5, 8}) == "no error");
  BOOST_TEST(apart({2, 7, 4}, {2, 5, 4}, {2, 5, 8}) == "k has shape [2, 5, 4]; expected [B, tokens, 6]");
  BOOST_TEST(apart({2, 7, 4}, {2, 5, 6}, {2, 5, 6}) == "v has shape [2, 5, 6]; expected [B, tokens, 8]");
  BOOST_TEST(apart({2, 7, 4}, {2, 6, 6}, {2, 5, 8}) == "k has 6 tokens, v has 5; they must match");

  const auto softmax_mechanism = make_mechanism("softmax", {});
  const auto by_head = [&](const Shape& q, const Shape& k, const Shape& v) {
    return error_of([&] { attention(*softmax_mechanism, of(q), of(k), of(v)); }, "[softmax] ");
  };
  BOOST_TEST(by_head({1, 2, 6, 4}, {1, 2, 8, 4}, {1, 2, 8, 4}) == "no error");
  BOOST_TEST(by_head({1, 2, 6, 4}, {1, 2, 7, 4}, {1, 2, 8, 4}) == "k has 7 tokens, v has 8; they must match");
  BOOST_TEST(by_head({1, 2, 6, 4}, {1, 3, 8, 4}, {1, 2, 8, 4}) ==
             "k has 3 heads, v has 2; expected 2 for the 2 heads of q");
  BOOST_TEST(by_head({1, 4, 6, 4}, {1, 2, 8, 4}, {1, 2, 8, 4}) ==
             "k has 2 heads, v has 2; expected 4 for the 4 heads of q");
  BOOST_TEST(
      by_head({2, 2, 6, 4}, {1, 2, 8, 4}, {1, 2, 8, 4}) ==
      "an operand has shape [2, 2, 6, 4], v has [1, 2, 8, 4]; expected [B, H, tokens, channels] with the same B");

  const Index starts[] = {0, 3, 5};
  tape.divide_rows({starts, 0, 3});
  BOOST_TEST(error_of([&] { packed_operands(of({1, 5, 18}), layout); }) == "no error");
  BOOST_TEST(error_of([&] {
               packed_operands(of({1, 6, 18}), layout);
             }) == "[attention] x has shape [1, 6, 18]; expected the rows of 2 sequences, [1, 5, 18]");
}

BOOST_AUTO_TEST_CASE(decoding_of_more_than_a_token) {
  const auto step = [](const char* name, const Shape& x) {
    const auto mechanism = make_mechanism(name, {});
    DecodingStep<double> token;
    Tape<double> decoding({.examples = {.decoding = &token}});
    const AttentionLayout layout = mechanism->layout(4, 2);
    const Var<double> rows_given = decoding.constant(x, [](Index) { return 1; });
    return error_of([&] { attention_step<double>(*mechanism, packed_operands(rows_given, layout), layout, {}, {}); });
  };
  const std::string expected = "; expected one token of one image";
  BOOST_TEST(step("softmax", {1, 3, 12}) == "[softmax] decoding 3 tokens of 1 images" + expected);
  BOOST_TEST(step("softmax", {2, 1, 12}) == "[softmax] decoding 1 tokens of 2 images" + expected);
  BOOST_TEST(step("sima", {1, 1, 12}) == "[sima] has no causal form");
}

BOOST_AUTO_TEST_SUITE_END()
