// Sampling of tokens, compared with a slow definition; a decoder's state and errors.
// tests/train/tasks/sequence_models.cpp compares decoding with full passes.
#include "heed/nn/decoder.h"

#include "heed/base/random.h"
#include "heed/nn/vit.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <numeric>

using namespace heed;

namespace {

/// Returns the probability of each token by definition; it is 0 for logits below the k-th largest.
std::vector<double> slow_probabilities(const std::vector<double>& logits, const Sampling& sampling) {
  std::vector<double> sorted = logits, p;
  std::sort(sorted.begin(), sorted.end(), std::greater<>());
  const auto k = sampling.top_k > 0 ? std::min<std::size_t>(static_cast<std::size_t>(sampling.top_k), sorted.size())
                                    : sorted.size();
  for (const double x : logits) p.push_back(x < sorted[k - 1] ? 0 : std::exp(x / sampling.temperature));
  const double sum = std::accumulate(p.begin(), p.end(), 0.0);
  for (double& x : p) x /= sum;
  return p;
}

ModelConfig small_language_model(bool start) {
  ModelConfig m;
  m.family = "sequence", m.task = "lm", m.vocab = 5, m.context = 4, m.dim = 4, m.depth = 2, m.heads = 2, m.hidden = 6;
  m.start = start;
  return m;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nn_decoder)

// A number u just inside a token's interval selects this token: for every number of candidates, with distinct and with
// tied logits, in float and in double.
BOOST_AUTO_TEST_CASE(tokens_by_their_probabilities) {
  for (const std::vector<double>& logits : {std::vector<double>{0.5, -1, 2, 1.5, -3, 0}, {1, 2, 0, 2, 1, 1}, {4}})
    for (const double temperature : {0.5, 1.0, 2.0})
      for (Index k = 0; k <= static_cast<Index>(logits.size()) + 1; ++k) {
        const Sampling sampling{temperature, k};
        const std::vector<double> p = slow_probabilities(logits, sampling);
        const std::vector<float> in_float(logits.begin(), logits.end());
        double below = 0;
        for (std::size_t i = 0; i < p.size(); below += p[i++]) {
          if (p[i] == 0) continue;
          for (const double u : {below + 1e-9, below + p[i] / 2, below + p[i] - 1e-9}) {
            BOOST_TEST(draw_token(std::span<const double>(logits), sampling, u) == static_cast<int>(i),
                       "top_k " << k << ", temperature " << temperature << ", u " << u);
            BOOST_TEST(draw_token(std::span<const float>(in_float), sampling, u) == static_cast<int>(i));
          }
        }
      }
}

// With one candidate, or temperature 0, the first of the largest is drawn, whatever u is.
BOOST_AUTO_TEST_CASE(one_candidate_is_greedy) {
  const std::vector<double> logits{0.5, 3, 2.9, -1};
  for (const double u : {0.0, 0.5, 1 - 1e-12}) {
    BOOST_TEST(draw_token(std::span<const double>(logits), {1, 1}, u) == 1);
    BOOST_TEST(draw_token(std::span<const double>(logits), {7, 1}, u) == 1);
    BOOST_TEST(draw_token(std::span<const double>(logits), {0, 3}, u) == 1);
  }
  // If rounding leaves the sum of all probabilities below u, the last candidate is selected, not the last token.
  BOOST_TEST(draw_token(std::span<const double>(logits), {1, 2}, 1.0) == 2);
}

// Softmax attention saves keys and values of each input: 2 D elements per block.
BOOST_AUTO_TEST_CASE(state_grows_with_each_input_and_ends_at_the_context) {
  for (const bool start : {false, true}) {
    const SequenceModel model(small_language_model(start), {});
    Parameters<float> parameters(model.parameters());
    parameters.initialise(1);
    Decoder<float> decoder(model, parameters);
    BOOST_TEST(error_of([&] { decoder.next(5); }) == "token 5; expected 0 to 4");
    if (!start) BOOST_TEST(error_of([&] { decoder.next(-1); }) == "token -1; expected 0 to 4");
    BOOST_TEST(decoder.position() == 0);
    for (Index t = 0; t < 4; ++t) {
      BOOST_TEST(decoder.next(start && t == 0 ? -1 : static_cast<int>(t)).size() == 5u);
      BOOST_TEST(decoder.position() == t + 1);
      BOOST_TEST(decoder.state_bytes() == 2 * 2 * 4 * (t + 1) * 4);
    }
    BOOST_TEST(error_of([&] { decoder.next(0); }) == "[model] context = 4: the input is full; no token can be added");
    decoder.restart();
    BOOST_TEST(decoder.position() == 0);
    BOOST_TEST(decoder.state_bytes() == 0);
  }
}

// Per head, linear attention saves d x d sums of phi(k) v and d sums of phi(k): here 2 x 2 and 2, for each of two heads
// in two blocks. They are double for every number type.
BOOST_AUTO_TEST_CASE(sums_of_a_state_are_double) {
  AttentionConfig attention;
  attention.mechanism = {"linear"};
  const SequenceModel model(small_language_model(false), attention);
  const auto check = [&](auto number) {
    Parameters<decltype(number)> parameters(model.parameters());
    parameters.initialise(1);
    Decoder<decltype(number)> decoder(model, parameters);
    for (int token = 0; token < 3; ++token) {
      decoder.next(token);
      BOOST_TEST(decoder.state_bytes() == 2 * 2 * (2 * 2 + 2) * 8);
    }
  };
  check(float{});
  check(double{});
}

BOOST_AUTO_TEST_CASE(only_language_models_predict_tokens) {
  const std::string expected = "[model] only family = \"sequence\" with task = \"lm\" predicts tokens";
  ModelConfig classifier = small_language_model(false), vit;
  classifier.task = "classify", classifier.pool = "mean", classifier.classes = 3;
  vit.image = 4, vit.channels = 1, vit.patch = 2, vit.dim = 4, vit.depth = 1, vit.heads = 2, vit.hidden = 5;
  vit.classes = 3;
  BOOST_TEST(error_of([&] { language_model(SequenceModel(classifier, {})); }) == expected);
  BOOST_TEST(error_of([&] { language_model(VisionTransformer(vit, {})); }) == expected);
  BOOST_TEST(error_of([&] { language_model(SequenceModel(small_language_model(true), {})); }) == "no error");
}

BOOST_AUTO_TEST_SUITE_END()
