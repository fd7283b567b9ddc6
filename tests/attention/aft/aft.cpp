#include "support/mechanism.h"

#include "heed/attention/capabilities/penalty.h"
#include "heed/attention/capabilities/preparation.h"
#include "heed/ops/attention.h"
#include "heed/nn/vit.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/step.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

BOOST_AUTO_TEST_SUITE(aft)

/// Returns operands for B images of N tokens, H heads of d channels, with keys of `key_width` channels.
Tensors operands(Index B, Index H, Index N, Index d, Index key_width) {
  Tensors t;
  t["q"] = random_tensor({B, H, N, d}, 1), t["k"] = random_tensor({B, H, N, key_width}, 2),
  t["v"] = random_tensor({B, H, N, d}, 3);
  return t;
}

/// Returns AFT's results for `given` and a random dout; the grid gives the token layout.
template <class T>
Tensors run(const OptionValues& options, Tensors given, Index height = 0, Index width = 0) {
  given["dout"] = random_tensor(given.at("q").shape(), 9);
  return run_mechanism<T>("aft", options, given, {.grid_height = height, .grid_width = width});
}

Tensors with(Tensors t, const std::string& name, Tensor<double> tensor) {
  t[name] = std::move(tensor);
  return t;
}

BOOST_AUTO_TEST_CASE(equation_2_as_it_is_written) {
  Tensors t = with(operands(1, 1, 5, 2, 2), "w", random_tensor({5, 5}, 4));
  const Tensors got = run<double>({{"param", "dense"}}, t);
  for (Index i = 0; i < 5; ++i)
    for (Index c = 0; c < 2; ++c) {
      double numerator = 0, denominator = 0;
      for (Index s = 0; s < 5; ++s) {
        const double e = std::exp(t["k"][s * 2 + c] + t["w"][i * 5 + s]);
        numerator += e * t["v"][s * 2 + c], denominator += e;
      }
      const double expected = numerator / denominator / (1 + std::exp(-t["q"][i * 2 + c]));
      BOOST_TEST(std::abs(got.at("out")[i * 2 + c] - expected) < 1e-14);
    }
}

BOOST_AUTO_TEST_CASE(local_lies_between_simple_and_full) {
  for (const std::string causal : {"false", "true"}) {
    const Tensors t = operands(2, 1, 70, 3, 3), dense = with(t, "w", random_tensor({70, 70}, 4));
    const auto local = [&](const std::string& window, const Tensors& given) {
      return run<double>({{"variant", "local"}, {"window", window}, {"param", "dense"}, {"causal", causal}}, given);
    };
    const Tensors simple = run<double>({{"variant", "simple"}, {"causal", causal}}, t);
    const Tensors full = run<double>({{"param", "dense"}, {"causal", causal}}, dense);
    check_same(local("0", dense), simple, 1e-13, "window 0");
    check_same(local("7", with(t, "w", Tensor<double>(Shape{70, 70}))), simple, 1e-13, "w = 0");
    check_same(local("70", dense), full, 1e-13, "window N");
    // Beyond the window the bias is zero: the result equals that of the full variant with these biases set to zero.
    for (const Index window : {2, 9}) {
      Tensor<double> near = random_tensor({70, 70}, 4);
      for (Index i = 0; i < 70 * 70; ++i)
        if (std::abs(i / 70 - i % 70) >= window) near[i] = 0;
      Tensors expected = run<double>({{"param", "dense"}, {"causal", causal}}, with(t, "w", near));
      expected.erase("dw");
      check_same(local(std::to_string(window), dense), expected, 1e-13, "window inside");
    }
  }
}

/// A factored bias is computed block by block for each image if there are few channels, and once for all images if
/// there are many.
BOOST_AUTO_TEST_CASE(factored_bias_is_the_product_of_its_factors) {
  const Index N = 67, rank = 3;
  const Tensor<double> u = random_tensor({N, rank}, 5), p = random_tensor({N, rank}, 6);
  Tensor<double> w(Shape{N, N});
  for (Index i = 0; i < N; ++i)
    for (Index s = 0; s < N; ++s)
      for (Index r = 0; r < rank; ++r) w[i * N + s] += u[i * rank + r] * p[s * rank + r];
  for (const auto& [D, once] : {std::pair<Index, bool>{2, false}, {40, true}})
    for (const OptionValues& options : {OptionValues{},
                                        {{"causal", "true"}},
                                        {{"variant", "local"}, {"window", "2"}},
                                        {{"variant", "local"}, {"window", "9"}}}) {
      OptionValues factored = options, dense = options;
      factored["rank"] = std::to_string(rank), dense["param"] = "dense";
      const AttentionShape shape{1, N, N, D, D, 0, 0, false};
      BOOST_TEST((make_mechanism("aft", factored)->memory(shape).prepared > 0) == once);
      const Tensors t = operands(3, 1, N, D, D);
      const Tensors got = run<double>(factored, with(with(t, "u", u), "p", p)),
                    expected = run<double>(dense, with(t, "w", w));
      check_same(got, expected, 1e-13, "u p^T");
      Tensor<double> du(u.shape()), dp(p.shape());
      for (Index i = 0; i < N; ++i)
        for (Index s = 0; s < N; ++s)
          for (Index r = 0; r < rank; ++r) {
            du[i * rank + r] += expected.at("dw")[i * N + s] * p[s * rank + r];
            dp[s * rank + r] += expected.at("dw")[i * N + s] * u[i * rank + r];
          }
      check_same({{"du", du}, {"dp", dp}}, got, 1e-12, "gradients of the factors");
    }
}

/// Returns rows [first, first + count) of [1, 1, N, n], or of [N, n].
Tensor<double> rows_of(const Tensor<double>& x, Index first, Index count) {
  const Index n = x.shape()[-1];
  Tensor<double> rows(x.shape().rank() == 4 ? Shape{1, 1, count, n} : Shape{count, n});
  std::copy_n(x.data() + first * n, count * n, rows.data());
  return rows;
}

/// Queries are processed in blocks, and the gradients of keys and values are summed over the blocks. A block with too
/// widely spread exponents, at most one in each case, is processed key by key. The results must equal those of each
/// block alone.
BOOST_AUTO_TEST_CASE(blocks_of_queries_share_their_keys) {
  const Index block = 200, N = 3 * block, D = 3;
  for (const Index far : {-1, 0, 1, 2}) {
    Tensors t = with(operands(1, 1, N, D, D), "w", random_tensor({N, N}, 4));
    t["dout"] = random_tensor(t["q"].shape(), 9);
    for (Index i = 0; i < block * N && far >= 0; ++i) t["w"][far * block * N + i] *= 500;
    const Tensors whole = run_mechanism<double>("aft", {{"param", "dense"}}, t, {});
    Tensors sums{{"dk", Tensor<double>(t["k"].shape())}, {"dv", Tensor<double>(t["v"].shape())}};
    for (Index first = 0; first < N; first += block) {
      Tensors part = t;
      for (const char* name : {"q", "w", "dout"}) part[name] = rows_of(t[name], first, block);
      const Tensors alone = run_mechanism<double>("aft", {{"param", "dense"}}, part, {});
      for (const char* name : {"out", "dq", "dw"})
        check_same({{name, alone.at(name)}}, {{name, rows_of(whole.at(name), first, block)}}, 1e-12, name);
      for (const char* name : {"dk", "dv"})
        for (Index i = 0; i < N * D; ++i) sums[name][i] += alone.at(name)[i];
    }
    check_same(sums, whole, 1e-12, "keys, far block " + std::to_string(far));
  }
}

/// Compares stated with executed costs at a size where a factored bias is computed for each image; the cost checks of
/// all mechanisms use only sizes at which it is prepared.
BOOST_AUTO_TEST_CASE(costs_where_the_bias_is_made_for_each_image) {
  const Index N = 17, D = 2;
  const AttentionShape shape{1, N, N, D, D, 0, 0, false};
  for (const std::string causal : {"false", "true"}) {
    const auto mechanism = make_mechanism("aft", {{"rank", "3"}, {"causal", causal}});
    const AttentionMemorySize size = mechanism->memory(shape);
    BOOST_TEST(size.prepared == 0);
    BOOST_TEST((preparation_cost(*mechanism, shape).forward == Counts{}));
    std::vector<Counted> q(N * D, 0.5), gradients(4 * N * D), saved(size.saved), scratch(size.scratch);
    const auto heads = [&](auto* data) { return Heads{Matrix(data, N, D), 1, N * D}; };
    const Heads<const Counted> in = heads(static_cast<const Counted*>(q.data()));
    std::vector<Tensor<Counted>> tensors, dtensors;
    std::vector<View<const Counted>> own;
    std::vector<View<Counted>> down;
    for (const ParameterSpec& spec : mechanism->parameters(shape))
      tensors.emplace_back(spec.shape), dtensors.emplace_back(spec.shape);
    for (auto& tensor : tensors) own.push_back(tensor.view());
    for (auto& tensor : dtensors) down.push_back(tensor.view());
    const AttentionInput<Counted> input{.shape = shape, .q = in, .k = in, .v = in, .parameters = own};
    Counted* const g = gradients.data();
    Counted::tally() = {};
    mechanism->forward(AttentionForward<Counted>{input, heads(g), {saved.data()}, {scratch.data()}});
    BOOST_TEST((Counted::tally() == mechanism->cost(shape).forward));
    Counted::tally() = {};
    mechanism->backward(AttentionBackward<Counted>{
        input,
        heads(static_cast<const Counted*>(g)),
        in,
        {saved.data()},
        {scratch.data()},
        {Update::assign, heads(g + N * D), heads(g + 2 * N * D), heads(g + 3 * N * D), down}});
    BOOST_TEST((Counted::tally() == mechanism->cost(shape).backward));
  }
}

/// Equation 6 with exp(w) - 1, as in the paper.
BOOST_AUTO_TEST_CASE(conv_is_equation_6) {
  const Index h = 4, w = 5, N = h * w;
  Tensors t = with(operands(1, 2, N, 3, 1), "w", random_tensor({2, 3, 3}, 4));
  const Tensors got = run<double>({{"variant", "conv"}, {"reparam", "false"}}, t, h, w);
  for (Index head = 0; head < 2; ++head)
    for (Index i = 0; i < N; ++i)
      for (Index c = 0; c < 3; ++c) {
        double numerator = 0, denominator = 0;
        for (Index s = 0; s < N; ++s) {
          const Index dy = s / w - i / w, dx = s % w - i % w;
          const bool inside = std::abs(dy) <= 1 && std::abs(dx) <= 1;
          const double factor = inside ? std::exp(t["w"][head * 9 + (dy + 1) * 3 + dx + 1]) - 1 : 0;
          const double e = (factor + 1) * std::exp(t["k"][head * N + s]);
          numerator += e * t["v"][(head * N + s) * 3 + c], denominator += e;
        }
        const Index place = (head * N + i) * 3 + c;
        BOOST_TEST(std::abs(got.at("out")[place] - numerator / denominator / (1 + std::exp(-t["q"][place]))) < 1e-14);
      }
}

BOOST_AUTO_TEST_CASE(conv_works_on_any_grid_with_the_same_tensors) {
  for (const Index side : {1, 2, 6, 9}) {
    Tensors t = operands(1, 2, side * side, 3, 1);
    t["w"] = random_tensor({2, 5, 5}, 4), t["gain"] = random_tensor({2}, 5), t["bias"] = random_tensor({2}, 6);
    const Tensors got = run<double>({{"variant", "conv"}}, t, side, side);
    BOOST_TEST(got.at("dw").shape() == Shape({2, 5, 5}));
  }
}

struct Setting {
  OptionValues options;
  Index height, width;
};
const Setting settings[] = {
    {{{"param", "dense"}}, 0, 0},
    {{{"param", "dense"}, {"causal", "true"}}, 0, 0},
    {{{"variant", "simple"}}, 0, 0},
    {{{"variant", "simple"}, {"causal", "true"}}, 0, 0},
    {{{"variant", "local"}, {"window", "2"}, {"param", "dense"}}, 0, 0},
    {{{"variant", "local"}, {"window", "9"}, {"param", "dense"}}, 0, 0},
    {{{"variant", "local"}, {"window", "9"}, {"param", "dense"}, {"outside", "masked"}}, 0, 0},
    {{{"variant", "local"}, {"window", "9"}, {"param", "dense"}, {"causal", "true"}}, 0, 0},
    {{{"variant", "conv"}, {"reparam", "false"}}, 8, 9},
    {{{"variant", "conv"}, {"reparam", "false"}, {"outside", "masked"}}, 8, 9},
    {{{"variant", "conv"}, {"reparam", "false"}, {"dims", "1"}, {"size", "5"}}, 0, 0},
    {{{"variant", "conv"}, {"reparam", "false"}, {"dims", "1"}, {"size", "5"}, {"outside", "masked"}}, 0, 0}};

/// Returns operands of 72 tokens for a setting, with biases of the given spread.
Tensors operands_of(const Setting& s, double spread) {
  const bool conv = s.options.contains("variant") && s.options.at("variant") == "conv",
             line = s.options.contains("dims");
  Tensors t = operands(1, conv ? 2 : 1, 72, 3, conv ? 1 : 3);
  if (conv)
    t["w"] = random_tensor(line ? Shape{2, 5} : Shape{2, 3, 3}, 4, spread);
  else if (s.options.contains("param"))
    t["w"] = random_tensor({72, 72}, 4, spread);
  return t;
}

BOOST_AUTO_TEST_CASE(adding_1000_to_all_keys_changes_nothing) {
  for (const Setting& s : settings)
    for (const double offset : {1000.0, -1000.0}) {
      Tensors t = operands_of(s, 1);
      for (double& k : t["k"]) k = std::round(k * 4096) / 4096;  // makes k + 1000 exact in float
      Tensors moved = t;
      for (double& k : moved["k"]) k += offset;
      check_same(run<double>(s.options, moved, s.height, s.width), run<double>(s.options, t, s.height, s.width), 1e-12,
                 "double");
      check_same(run<float>(s.options, moved, s.height, s.width), run<double>(s.options, t, s.height, s.width), 1e-5,
                 "float");
    }
}

// Spreads of keys, or of biases, that suit products, that are just too wide for products, and that give a single key
// all the weight. An exponent of size `spread` has a rounding error of 6e-8 * spread.
BOOST_AUTO_TEST_CASE(float_is_finite_and_near_double_in_all_ranges) {
  for (const Setting& s : settings)
    for (const double spread : {3.0, 20.0, 60.0, 500.0, 5000.0})
      for (const bool in_keys : {true, false}) {
        Tensors t = operands_of(s, in_keys ? 1 : spread);
        if (in_keys) t["k"] = random_tensor(t["k"].shape(), 2, spread);
        check_same(run<float>(s.options, t, s.height, s.width), run<double>(s.options, t, s.height, s.width),
                   2e-5 + 1.2e-7 * spread, s.options.begin()->second + ", spread " + std::to_string(spread));
      }
}

BOOST_AUTO_TEST_CASE(keys_that_rise_and_fall_by_500) {
  for (const Setting& s : settings)
    for (const double step : {500.0, -500.0}) {
      Tensors t = operands_of(s, 1);
      const Index width = t["k"].shape()[3];
      for (Index i = 0; i < t["k"].size(); ++i) t["k"][i] += step * static_cast<double>(i / width % 72);
      const Tensors in_double = run<double>(s.options, t, s.height, s.width);
      check_same(run<float>(s.options, t, s.height, s.width), in_double, 2e-4,
                 s.options.begin()->second + ", steps of 500");
    }
}

BOOST_AUTO_TEST_CASE(memory_is_linear_in_the_tokens) {
  const Index N = 4096, D = 64;
  const AttentionShape shape{1, N, N, D, D, 64, 64, false};
  const auto full = make_mechanism("aft", {{"rank", "8"}});
  BOOST_TEST(full->memory(shape).saved == 3 * N * D);
  BOOST_TEST(full->memory(shape).scratch <= 8 * N * D + 4 * 256 * N + 5 * 256 * D);
  BOOST_TEST(full->memory(shape).prepared == 0);
  const auto local = make_mechanism("aft", {{"variant", "local"}, {"window", "8"}, {"rank", "8"}});
  const AttentionMemorySize of_local = local->memory(shape);
  BOOST_TEST(of_local.saved + of_local.scratch <= 8 * N * D);
  BOOST_TEST(of_local.prepared > 0);
  BOOST_TEST(of_local.prepared <= 8 * N * D + N);
  const auto simple = make_mechanism("aft", {{"variant", "simple"}});
  BOOST_TEST(simple->memory(shape).saved == 3 * D);
  BOOST_TEST(simple->memory(shape).scratch <= 7 * D);
  const AttentionShape heads{4, N, N, 16, 16, 64, 64, false};
  const auto conv = make_mechanism("aft", {{"variant", "conv"}, {"size", "11"}});
  BOOST_TEST(conv->memory(heads).saved + conv->memory(heads).scratch <= 4 * N * 18 + 5 * 121 + 6 * N * 18);
}

/// Returns the bytes that a forward and a backward pass of the mechanism take from the tape.
Index tape_bytes(const OptionValues& options, Index N, Index D) {
  const auto mechanism = make_mechanism("aft", options);
  AttentionShape shape{1, N, N, D, D, 0, 0, false};
  const Tensor<float> q(Shape{1, 1, N, D});
  std::vector<Tensor<float>> tensors;
  for (const ParameterSpec& spec : mechanism->parameters(shape)) tensors.emplace_back(spec.shape);
  Tape<float> tape;
  std::vector<Var<float>> own;
  for (const auto& tensor : tensors) own.push_back(tape.input(tensor.view()));
  const Var<float> out = attention<float>(*mechanism, tape.input(q.view()), tape.input(q.view()), tape.input(q.view()),
                                          shape, std::span<const Var<float>>(own));
  tape.backward(out, q.view());
  return tape.reserved();
}

BOOST_AUTO_TEST_CASE(the_tape_holds_nothing_quadratic) {
  const Index D = 16;
  for (const OptionValues& options :
       {OptionValues{{"rank", "8"}}, OptionValues{{"variant", "local"}, {"window", "8"}, {"rank", "8"}},
        OptionValues{{"variant", "simple"}}}) {
    // Saved elements, the result, and gradients of q, k, v, u and p. The arena may hold twice as much, but never N x N.
    const Index bytes = tape_bytes(options, 4096, D);
    BOOST_TEST(bytes <= 4 * 4 * (8 * 4096 * D + 4 * 4096 * 8));
    BOOST_TEST(bytes < 4096 * 4096);
  }
}

// Numerator and denominator, and the gradients of v and k, are counted for each channel of each pair with a bias, and
// of each key that any query attends to without a bias.
BOOST_AUTO_TEST_CASE(contractions_per_pair_and_per_key) {
  const auto cost = [](const OptionValues& options, Index tokens) {
    AttentionShape shape;
    shape.queries = shape.keys = tokens, shape.width = shape.value_width = 6;
    return make_mechanism("aft", options)->cost(shape);
  };
  for (const Index tokens : {1, 4, 9}) {
    const Cost simple = cost({{"variant", "simple"}}, tokens);
    BOOST_TEST((simple.forward_contractions == Counts{.mul = 6 * tokens, .add = 12 * tokens}));
    BOOST_TEST((simple.backward_contractions == Counts{.mul = 12 * tokens, .add = 12 * tokens}));
  }
  const Index pairs = 9 + 2 * 8 + 2 * 7;  // pairs of 9 tokens that are less than 3 apart
  const Cost local = cost({{"variant", "local"}, {"window", "3"}, {"param", "dense"}}, 9);
  BOOST_TEST((local.forward_contractions == Counts{.mul = 6 * (pairs + 9), .add = 12 * (pairs + 9)}));
  BOOST_TEST((local.backward_contractions == Counts{.mul = 12 * pairs + 12 * 9, .add = 18 * pairs + 12 * 9}));
}

BOOST_AUTO_TEST_CASE(impossible_combinations_are_refused) {
  const AttentionShape one{1, 9, 9, 4, 4, 2, 4, true}, heads{2, 8, 8, 2, 2, 2, 4, false};
  const auto refused = [](const OptionValues& options, const AttentionShape& shape, const std::string& reason) {
    BOOST_CHECK_EXCEPTION(make_mechanism("aft", options)->check(shape), Error,
                          [&](const Error& e) { return std::string(e.what()).find(reason) != std::string::npos; });
  };
  refused({{"variant", "conv"}}, one, "class token");
  refused({{"variant", "conv"}}, {2, 9, 9, 2, 2, 2, 4, false},
          "9 queries and 9 keys do not form an image grid of 2 x 4");
  refused({{"variant", "conv"}, {"causal", "true"}}, heads, "causal");
  refused({{"variant", "conv"}, {"size", "4"}}, heads, "odd");
  refused({{"variant", "conv"}, {"dims", "3"}}, heads, "dims");
  refused({{"variant", "conv"}, {"sparsity", "gumbel"}, {"tau", "0"}}, heads, "tau");
  refused({{"variant", "local"}}, one, "window");
  refused({{"variant", "local"}, {"window", "0"}, {"outside", "masked"}}, one, "no keys");
  refused({{"outside", "masked"}}, one, "masked");
  refused({{"sparsity", "entropy"}}, one, "sparsity");
  refused({}, heads, "2 heads");
  refused({{"variant", "local"}, {"window", "2"}}, {1, 5, 7, 4, 4, 0, 0, false}, "7 keys and 5 queries");
  for (const char* variant : {"full", "simple"})
    for (const AttentionShape& cross : {AttentionShape{1, 5, 7, 4, 4, 0, 0, false}, {1, 7, 5, 4, 4, 0, 0, false}}) {
      refused({{"variant", variant}, {"causal", "true"}}, cross, "must be equal unless");
      BOOST_TEST(refusal("aft", {{"variant", variant}}, cross) == "");
    }
  refused({{"variant", "conv"}, {"dims", "1"}}, {2, 5, 7, 2, 2, 0, 0, false}, "7 keys and 5 queries");
  refused({{"variant", "conv"}, {"dims", "1"}}, one, "class token");
  refused({}, {1, 5, 5, 4, 3, 0, 0, false}, "q has 4 channels, v has 3; they must match");
  for (const std::string rank : {"0", "4097"})
    refused({{"rank", rank}}, one, "[aft] rank is " + rank + "; expected 1 to 4096");
  for (const std::string size : {"-1", "0", "2", "1003"})
    refused({{"variant", "conv"}, {"size", size}}, heads, "size is " + size + "; expected an odd number, 1 to 1001");
  refused({{"variant", "simple"}, {"outside", "masked"}}, one, "masked");
  refused({{"dims", "0"}}, one, "dims is 0");
  refused({{"tau", "-1"}}, one, "tau is -1");
  for (const OptionValues& options : {OptionValues{{"rank", "1"}},
                                      {{"rank", "4096"}},
                                      {{"variant", "local"}, {"window", "0"}},
                                      {{"variant", "local"}, {"window", "1"}, {"outside", "masked"}},
                                      {{"variant", "simple"}, {"causal", "true"}}})
    BOOST_TEST(refusal("aft", options, one) == "");
  for (const OptionValues& options : {OptionValues{{"size", "1"}},
                                      {{"size", "1001"}},
                                      {{"outside", "masked"}},
                                      {{"sparsity", "entropy"}},
                                      {{"sparsity", "gumbel"}, {"tau", "1e-3"}}}) {
    OptionValues conv = options;
    conv["variant"] = "conv";
    BOOST_TEST(refusal("aft", conv, heads) == "");
    conv["dims"] = "1";
    BOOST_TEST(refusal("aft", conv, {2, 8, 8, 2, 2, 0, 0, false}) == "");
  }
  BOOST_CHECK_THROW(make_mechanism("aft", {{"variant", "fast"}}), Error);
  BOOST_CHECK_THROW(make_mechanism("aft", {{"widnow", "3"}}), Error);
}

BOOST_AUTO_TEST_CASE(entropy_of_equal_biases_is_the_logarithm_of_their_number) {
  const auto mechanism = make_mechanism("aft", {{"variant", "conv"}, {"sparsity", "entropy"}, {"coef", "0.5"}});
  const AttentionShape shape{3, 12, 12, 2, 2, 3, 4, false};
  const Tensor<double> w = random_tensor({3, 3, 3}, 1), zero(Shape{3});
  const std::vector<View<const double>> own{w.view(), zero.view(), zero.view()};
  double penalty = 0;
  mechanism->penalty_term()->penalty(AttentionPenalty<double>{shape, own, 1.0, {}, &penalty});
  BOOST_TEST(std::abs(penalty - 0.5 * 3 * std::log(9)) < 1e-14);
}

BOOST_AUTO_TEST_CASE(a_step_adds_the_penalty_once) {
  ModelConfig config;
  config.image = 6, config.channels = 1, config.patch = 2, config.dim = 4, config.depth = 2, config.heads = 2;
  config.hidden = 4, config.classes = 3, config.pool = "mean";
  const auto losses = [&](const std::string& sparsity, Index microbatch) {
    AttentionConfig attention;
    attention.mechanism = {"aft"};
    for (const auto& [name, text] : OptionValues{{"variant", "conv"}, {"sparsity", sparsity}, {"coef", "0.5"}})
      attention.options[name] = {text, name};
    const VisionTransformer model(config, attention);
    Parameters<double> parameters(model.parameters());
    parameters.initialise(1);
    BatchGradient<double> gradient(model, parameters, 4, {.microbatch = microbatch});
    const Tensor<double> images = random_tensor({4, 1, 6, 6}, 1);
    Tensor<double> targets(Shape{4, 3});
    const int labels[4] = {0, 1, 2, 0};
    for (Index i = 0; i < 4; ++i) targets[i * 3 + labels[i]] = 1;
    const ClassificationBatch<double> batch({images.view()}, std::as_const(targets).view(), labels);
    return gradient.run(batch, RandomStream(1)).loss;
  };
  // gain starts at 0, so the biases of a head are equal: 2 blocks, 2 heads, 9 positions.
  for (const Index microbatch : {1, 3, 4})
    BOOST_TEST(std::abs(losses("entropy", microbatch) - losses("none", microbatch) - 0.5 * 2 * 2 * std::log(9)) <
               1e-12);
}

BOOST_AUTO_TEST_SUITE_END()
