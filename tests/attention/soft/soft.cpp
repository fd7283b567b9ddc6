// SOFT for known special cases and extreme tokens, its memory and its errors. tests/checks/cases.cpp checks gradients,
// costs and agreement of float with double for all mechanisms.
#include "support/mechanism.h"

#include "heed/attention/capabilities/inverse.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <numeric>
#include <set>

using namespace heed;

namespace {

/// Returns the shape of a grid of tokens with d channels.
AttentionShape shape_of(Index height, Index width, Index d, bool class_token = false) {
  const Index tokens = height * width + class_token;
  return {1, tokens, tokens, d, d, height, width, class_token};
}

template <class T>
Tensors run(const OptionValues& options, const AttentionShape& shape, const Tensor<double>& q, const Tensor<double>& v,
            const std::vector<double>& index = {}) {
  Tensors given{{"q", q}, {"v", v}, {"dout", random_tensor(v.shape(), 8)}};
  if (!index.empty()) {
    Tensor<double> landmarks(Shape{static_cast<Index>(index.size())});
    std::copy(index.begin(), index.end(), landmarks.begin());
    given["landmark_index"] = landmarks;
  }
  return run_mechanism<T>("soft", options, given, shape);
}

Tensor<double> random_tokens(Index tokens, Index d, double spread, std::uint64_t seed) {
  return random_tensor({1, 1, tokens, d}, seed, spread);
}

double difference(const Tensor<double>& a, const Tensor<double>& b) {
  double most = 0, largest = 1e-6;
  for (Index i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i])) return INFINITY;
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return most / largest;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(soft)

// q = 0 and 2 with d = 1: G = exp(-4 / 2) between them. exact: out_0 = v_0 + G v_1.
BOOST_AUTO_TEST_CASE(by_hand) {
  const Tensor<double> q = tokens(2, 1, {0, 2}), v = tokens(2, 1, {3, 5});
  const double g = std::exp(-2.0);
  const auto exact = run<double>({{"kernel", "exact"}}, shape_of(1, 2, 1), q, v);
  BOOST_TEST(std::abs(exact.at("out")[0] - (3 + g * 5)) < 1e-15);
  BOOST_TEST(std::abs(exact.at("out")[1] - (g * 3 + 5)) < 1e-15);
  // One landmark, the mean 1: A = 1, P = (p, p) with p = exp(-1 / 2); out = p^2 (3 + 5) for both tokens.
  const auto one = run<double>({{"landmarks", "1"}}, shape_of(1, 2, 1), q, v);
  for (Index i = 0; i < 2; ++i) BOOST_TEST(std::abs(one.at("out")[i] - std::exp(-1.0) * 8) < 1e-12);
}

// With every token a landmark, P^T A^+ P = A A^-1 A = A.
BOOST_AUTO_TEST_CASE(all_tokens_as_landmarks_make_it_exact) {
  const auto q = random_tokens(12, 4, 2, 1), v = random_tokens(12, 4, 1, 2);
  const auto exact = run<double>({{"kernel", "exact"}}, shape_of(3, 4, 4), q, v);
  for (const OptionValues& options : std::vector<OptionValues>{
           {{"sampling", "first"}, {"landmarks", "12"}}, {{"ratio", "1"}}, {{"ratio", "1"}, {"init", "backtrack"}}}) {
    OptionValues more = options;
    more["iterations"] = "40";
    const auto nystrom = run<double>(more, shape_of(3, 4, 4), q, v);
    BOOST_TEST(difference(nystrom.at("out"), exact.at("out")) < 1e-9);
    BOOST_TEST(difference(nystrom.at("dq"), exact.at("dq")) < 1e-7);
    BOOST_TEST(difference(nystrom.at("dv"), exact.at("dv")) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(a_ratio_that_divides_the_grid_is_adaptive_pooling) {
  const auto q = random_tokens(25, 4, 2, 1), v = random_tokens(25, 4, 1, 2);
  const AttentionShape shape = shape_of(6, 4, 4, true);
  const auto ratio = run<double>({{"ratio", "2"}, {"iterations", "4"}}, shape, q, v);
  const auto square = run<double>({{"ratio", "2"}, {"iterations", "4"}, {"dims", "1"}}, shape, q, v);
  BOOST_TEST(difference(ratio.at("out"), square.at("out")) > 1e-3);  // consecutive pairs are not 2 x 2 cells
  const auto q16 = random_tokens(16, 4, 2, 3), v16 = random_tokens(16, 4, 1, 4);
  const auto a = run<double>({{"ratio", "2"}}, shape_of(4, 4, 4), q16, v16);
  const auto b = run<double>({{"landmarks", "4"}}, shape_of(4, 4, 4), q16, v16);
  BOOST_TEST(difference(a.at("out"), b.at("out")) == 0);
  BOOST_TEST(difference(a.at("dq"), b.at("dq")) == 0);
}

BOOST_AUTO_TEST_CASE(the_implicit_gradient_is_the_exact_one_once_converged) {
  const auto q = random_tokens(16, 4, 4, 3), v = random_tokens(16, 4, 1, 4);
  for (const char* normalize : {"none", "map", "inverse"}) {
    const auto gradient = [&](const char* kind, const char* iterations) {
      return run<double>({{"sampling", "first"},
                          {"landmarks", "5"},
                          {"normalize", normalize},
                          {"inverse_grad", kind},
                          {"iterations", iterations}},
                         shape_of(4, 4, 4), q, v)
          .at("dq");
    };
    BOOST_TEST(difference(gradient("implicit", "40"), gradient("unrolled", "40")) < 1e-9);
    BOOST_TEST(difference(gradient("implicit", "2"), gradient("unrolled", "2")) > 1e-6);
  }
}

// All tokens equal: A and P are all ones, A^+ = 1 1^T / m^2, every output is the sum of v.
BOOST_AUTO_TEST_CASE(identical_tokens) {
  Tensor<double> q(Shape{1, 1, 16, 4}), v = random_tokens(16, 4, 1, 2);
  for (Index i = 0; i < q.size(); ++i) q[i] = 0.3f * static_cast<float>(i % 4 + 1);
  for (const OptionValues& options : std::vector<OptionValues>{{{"ratio", "2"}},
                                                               {{"landmarks", "9"}},
                                                               {{"ratio", "2"}, {"inverse_grad", "implicit"}},
                                                               {{"ratio", "2"}, {"normalize", "map"}},
                                                               {{"ratio", "2"}, {"normalize", "inverse"}},
                                                               {{"ratio", "2"}, {"ridge", "0.01"}}}) {
    const auto in_double = run<double>(options, shape_of(4, 4, 4), q, v);
    const auto in_float = run<float>(options, shape_of(4, 4, 4), q, v);
    BOOST_TEST(difference(in_float.at("out"), in_double.at("out")) < 2e-4);
    BOOST_TEST(difference(in_float.at("dv"), in_double.at("dv")) < 2e-4);
    for (Index i = 0; i < q.size(); ++i) BOOST_TEST(std::abs(in_float.at("dq")[i]) < 1e-4);
    if (options.contains("normalize") || options.contains("ridge")) continue;
    for (Index c = 0; c < 4; ++c) {
      double sum = 0;
      for (Index i = 0; i < 16; ++i) sum += v[i * 4 + c];
      for (Index i = 0; i < 16; ++i) BOOST_TEST(std::abs(in_double.at("out")[i * 4 + c] - sum) < 1e-9);
    }
  }
}

// Each pair takes a difference, its square and a sum per channel, then the product with v; normalize=map adds a product
// with 1 for the row sums of the map. The backward pass takes the gradients of v and of the map, then a product and
// three sums per pair and channel; the row sums add to the map's gradient.
BOOST_AUTO_TEST_CASE(contractions_of_the_exact_kernel) {
  const AttentionShape shape{4, 50, 50, 16, 16, 0, 0, false};
  const Index pairs = 4 * 50 * 50;
  const Cost plain = make_mechanism("soft", {{"kernel", "exact"}})->cost(shape),
             map = make_mechanism("soft", {{"kernel", "exact"}, {"normalize", "map"}})->cost(shape);
  BOOST_TEST((plain.forward_contractions == pairs * Counts{.mul = 16 + 16, .add = 2 * 16 + 16}));
  BOOST_TEST((plain.backward_contractions == pairs * Counts{.mul = 2 * 16 + 16, .add = 2 * 16 + 3 * 16}));
  BOOST_TEST((map.forward_contractions == plain.forward_contractions + pairs * Counts{.mul = 1, .add = 1}));
  BOOST_TEST((map.backward_contractions == plain.backward_contractions + pairs * Counts{.mul = 1, .add = 1}));
}

// For distant tokens A = I: a token attends to itself if it is a landmark, otherwise to nothing, even if squared
// distances overflow.
BOOST_AUTO_TEST_CASE(tokens_far_apart) {
  for (const double distance : {1e3, 1e25}) {
    Tensor<double> q(Shape{1, 1, 8, 2}), v = random_tokens(8, 2, 1, 2);
    for (Index i = 0; i < q.size(); ++i) q[i] = static_cast<float>(distance * static_cast<double>(i));
    for (const char* normalize : {"none", "map", "inverse"}) {
      const OptionValues options{{"sampling", "first"}, {"landmarks", "3"}, {"normalize", normalize}};
      const auto in_double = run<double>(options, shape_of(2, 4, 2), q, v);
      const auto in_float = run<float>(options, shape_of(2, 4, 2), q, v);
      for (Index i = 0; i < v.size(); ++i) BOOST_TEST(std::abs(in_double.at("out")[i] - (i < 6 ? v[i] : 0)) < 1e-12);
      BOOST_TEST(difference(in_float.at("out"), in_double.at("out")) < 1e-6);
      BOOST_TEST(difference(in_float.at("dv"), in_double.at("dv")) < 1e-6);
      BOOST_TEST(difference(in_float.at("dq"), in_double.at("dq")) < 1e-6);
    }
  }
}

// Landmarks at 0 and 2, with one channel, have the squared distance 4.
BOOST_AUTO_TEST_CASE(what_it_inverts) {
  const OptionValues first{{"sampling", "first"}, {"landmarks", "2"}, {"ridge", "0.5"}};
  const auto mechanism = make_mechanism("soft", first), exact = make_mechanism("soft", {{"kernel", "exact"}});
  const float q[] = {0, 2, 5};
  AttentionInput<float> in{.shape = shape_of(1, 3, 1), .q = {{q, 3, 1}, 1, 3}, .k = {}, .v = {}};
  const Tensor<float> A = mechanism->inverse()->inverted(in);
  BOOST_TEST((A.shape() == Shape{1, 2, 2}));
  for (Index i = 0; i < 4; ++i) BOOST_TEST(std::abs(A[i] - (i % 3 == 0 ? 1.5 : std::exp(-2.0))) < 1e-6);
  BOOST_TEST(exact->inverse() == nullptr);
  // The first of two heads has the tokens of `q`; in the second head all tokens are equal.
  const float heads[] = {0, 2, 5, 5, 5, 5};
  in.q = {{heads, 3, 1}, 2, 3}, in.shape.heads = 2;
  const Tensor<float> both = mechanism->inverse()->inverted(in);
  BOOST_TEST((both.shape() == Shape{2, 2, 2}));
  for (Index i = 0; i < 4; ++i) {
    BOOST_TEST(std::abs(both[i] - A[i]) < 1e-6);
    BOOST_TEST(std::abs(both[4 + i] - (i % 3 == 0 ? 1.5 : 1)) < 1e-6);
  }
}

BOOST_AUTO_TEST_CASE(memory_grows_with_tokens_not_with_their_square) {
  for (const char* normalize : {"none", "map", "inverse"})
    for (const char* sampling : {"pool", "conv"}) {
      const auto mechanism =
          make_mechanism("soft", {{"ratio", "16"}, {"sampling", sampling}, {"normalize", normalize}});
      AttentionShape shape = shape_of(64, 64, 32);
      const Index m = 16, numbers = mechanism->memory(shape).saved + mechanism->memory(shape).scratch;
      BOOST_TEST(numbers < 4096 * (2 * m + 6 * 32 + 4));
      BOOST_TEST(numbers < 4096 * 4096 / 16);
    }
}

BOOST_AUTO_TEST_CASE(random_landmarks_are_distinct_and_come_from_the_seed) {
  const auto mechanism = make_mechanism("soft", {{"sampling", "random"}, {"landmarks", "16"}});
  const auto specs = mechanism->parameters(shape_of(4, 4, 4, true));
  BOOST_REQUIRE(specs.size() == 1u);
  BOOST_TEST(specs[0].name == "landmark_index");
  BOOST_TEST(!specs[0].trainable);
  const auto draw = [&](std::uint64_t seed) {
    ParameterList list;
    list.add(specs[0]);
    Parameters<double> parameters(list);
    parameters.initialise(seed);
    return std::vector<double>(parameters[0].begin(), parameters[0].end());
  };
  const auto first = draw(1);
  BOOST_TEST((draw(1) == first));
  BOOST_TEST((draw(2) != first));
  std::vector<double> all(16);
  std::iota(all.begin(), all.end(), 1.0);  // every token except the class token
  const std::set<double> sorted(first.begin(), first.end());
  BOOST_TEST((std::vector<double>(sorted.begin(), sorted.end()) == all));
}

BOOST_AUTO_TEST_CASE(an_index_must_name_a_token) {
  const auto q = random_tokens(5, 2, 1, 1), v = random_tokens(5, 2, 1, 2);
  const OptionValues options{{"sampling", "random"}, {"landmarks", "2"}, {"iterations", "2"}};
  BOOST_CHECK_NO_THROW(run<double>(options, shape_of(2, 2, 2, true), q, v, {4, 1}));
  for (const double wrong : {0.0, 5.0, -1.0, 1.5, 1e300, std::nan("")})
    BOOST_CHECK_THROW(run<double>(options, shape_of(2, 2, 2, true), q, v, {1, wrong}), Error);
  BOOST_TEST(error_of([&] {
               run<double>(options, shape_of(2, 2, 2, true), q, v, {1, 5});
             }) == "[soft] landmark_index[1] is 5; expected a whole number from 1 to 4");
}

BOOST_AUTO_TEST_CASE(sizes_come_from_given_tensors) {
  const auto random = make_mechanism("soft", {{"sampling", "random"}});
  random->read_sizes({{"landmark_index", Shape{7}}});
  BOOST_CHECK_NO_THROW(random->check(shape_of(3, 3, 4)));
  BOOST_TEST(random->parameters(shape_of(3, 3, 4))[0].shape[0] == 7);
  const auto conv = make_mechanism("soft", {{"sampling", "conv"}});
  conv->read_sizes({{"landmark.weight", Shape{4, 4, 2, 2}}});
  BOOST_TEST((conv->parameters(shape_of(4, 4, 4))[0].shape == Shape{4, 4, 2, 2}));
  conv->read_sizes({{"landmark.weight", Shape{}}});
}

BOOST_AUTO_TEST_CASE(what_is_refused_and_why) {
  const AttentionShape grid = shape_of(4, 6, 4), none{1, 24, 24, 4, 4, 0, 0, false}, cross{1, 4, 5, 4, 4, 0, 0, false};
  const auto expect = [](const std::string& part, const OptionValues& options, const AttentionShape& shape) {
    const std::string message = refusal("soft", options, shape);
    BOOST_TEST(message.find(part) != std::string::npos, "'" << message << "' does not say '" << part << "'");
    BOOST_TEST(message.find("[soft]") == 0u);
  };
  expect("causal", {{"ratio", "2"}, {"causal", "true"}}, grid);
  expect("4 queries and 5 keys", {{"kernel", "exact"}}, cross);
  expect("divide both sides of the image grid, 4 x 6", {{"ratio", "3"}}, grid);
  expect("ratio is 0, landmarks is 0; set exactly one of them", {}, grid);
  expect("set exactly one of them", {{"ratio", "2"}, {"landmarks", "4"}}, grid);
  expect("needs as many tokens as the grid has cells", {{"ratio", "2"}}, none);
  expect("square", {{"landmarks", "5"}}, grid);
  expect("1 to 24", {{"sampling", "first"}, {"landmarks", "25"}}, grid);
  expect("-4; expected a square number", {{"landmarks", "-4"}}, grid);
  expect("at most 16384", {{"landmarks", "1000000000000"}}, grid);
  expect("landmarks is 0", {{"sampling", "random"}}, grid);
  expect("uses ratio instead", {{"sampling", "conv"}, {"landmarks", "4"}}, grid);
  expect("image grid", {{"sampling", "conv"}, {"dims", "1"}, {"ratio", "2"}}, grid);
  expect("divide the 24 tokens", {{"dims", "1"}, {"ratio", "5"}}, none);
  expect("dims is 3", {{"dims", "3"}, {"ratio", "2"}}, grid);
  expect("iterations is 65", {{"iterations", "65"}, {"ratio", "2"}}, grid);
  expect("ridge is -1", {{"ridge", "-1"}, {"ratio", "2"}}, grid);
  expect("has no inverse", {{"kernel", "exact"}, {"normalize", "inverse"}}, grid);
  expect("ratio is -1; expected 1 or more", {{"ratio", "-1"}}, grid);
  expect("ratio is 2; sampling=random and sampling=first use landmarks",
         {{"sampling", "first"}, {"ratio", "2"}, {"landmarks", "4"}}, grid);
  expect("landmarks is 0; expected 1 to 24", {{"sampling", "first"}}, grid);
  expect("landmarks is 4; dims=1 uses ratio instead", {{"dims", "1"}, {"landmarks", "4"}}, grid);
  expect("dims is 1; sampling=conv needs the image grid", {{"sampling", "conv"}, {"dims", "1"}, {"ratio", "2"}}, grid);
  expect("iterations is -1", {{"iterations", "-1"}, {"ratio", "2"}}, grid);
  expect("landmark_act is true; kernel=exact has no landmarks", {{"kernel", "exact"}, {"landmark_act", "true"}}, grid);
  const AttentionShape with_class = shape_of(4, 6, 4, true);
  expect("landmarks is 25; expected 1 to 24", {{"sampling", "random"}, {"landmarks", "25"}}, with_class);
  for (const char* landmarks : {"1", "24"})
    BOOST_TEST(refusal("soft", {{"sampling", "first"}, {"landmarks", landmarks}}, with_class).empty());
  expect("divide both sides of the image grid, 4 x 6", {{"ratio", "4"}}, grid);
  BOOST_TEST(refusal("soft", {{"ratio", "2"}, {"causal", "false"}}, grid).empty());
  BOOST_TEST(refusal("soft", {{"dims", "1"}, {"ratio", "4"}}, none).empty());
  AttentionShape sequence = none;
  sequence.queries = sequence.keys = sequence.longest = 6;
  for (const char* count : {"6", "9"})
    BOOST_TEST(refusal("soft", {{"dims", "1"}, {"sampling", "random"}, {"landmarks", count}}, sequence) ==
               (count == std::string("6") ? "" : "[soft] landmarks is 9; expected 1 to 6, the number of tokens"));
  for (const char* kind : {"pool", "first"})
    BOOST_TEST(refusal("soft", {{"dims", "1"}, {"sampling", kind}, {"landmarks", "9"}}, sequence) == "");
  expect("landmarks is -1; expected 1 or more", {{"dims", "1"}, {"landmarks", "-1"}}, sequence);
  BOOST_TEST(make_mechanism("soft", {})->layout(12, 3).key_width == 0);
}

// The convolution's side must be odd, and its grid must have all tokens but the class token.
BOOST_AUTO_TEST_CASE(convolutions_that_are_refused) {
  const auto said = [](const char* side, const AttentionShape& shape) {
    return refusal("soft", {{"kernel", "exact"}, {"vconv", side}}, shape);
  };
  const AttentionShape grid = shape_of(4, 6, 4), with_class = shape_of(4, 6, 4, true);
  for (const char* side : {"0", "1", "3", "999"})
    BOOST_TEST((said(side, grid) == "" && said(side, with_class) == ""), "vconv = " << side);
  for (const std::string side : {"-1", "2", "1001"})
    BOOST_TEST(said(side.c_str(), grid) == "[soft] vconv is " + side + "; expected an odd number up to 999, or 0");
  AttentionShape none = grid, more = with_class;
  none.grid_height = none.grid_width = 0;
  more.queries = more.keys = 26;
  BOOST_TEST(said("3", none) ==
             "[soft] vconv is 3; its convolution needs an image grid, but 24 tokens do not fill 0 x 0");
  BOOST_TEST(said("3", more) ==
             "[soft] vconv is 3; its convolution needs an image grid, but 25 tokens do not fill 4 x 6");
  BOOST_TEST(said("0", none) == "");
}

// At most 16,384 landmarks: cells of 2 x 2 tokens on a grid, or pairs of consecutive tokens.
BOOST_AUTO_TEST_CASE(too_many_landmarks_are_refused) {
  const auto said = [](const char* dims, Index height) {
    return refusal("soft", {{"ratio", "2"}, {"dims", dims}}, shape_of(height, 256, 4));
  };
  BOOST_TEST(said("2", 256) == "");
  BOOST_TEST(said("2", 258) == "[soft] there are 16512 landmarks; expected at most 16384");
  BOOST_TEST(said("1", 128) == "");
  BOOST_TEST(said("1", 129) == "[soft] there are 16512 landmarks; expected at most 16384");
}

BOOST_AUTO_TEST_SUITE_END()
