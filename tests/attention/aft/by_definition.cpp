// AFT compared with its definition: every variant with every option, the noise of `gumbel`, the penalty of `entropy`.
#include "support/definition.h"

#include "heed/attention/capabilities/penalty.h"
#include "heed/ops/attention.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

struct AftCase {
  OptionValues options;
  Index N = 7, height = 0, width = 0, d = 3;
  Index longest = 0;  ///< length of the longest sequence; 0: not a batch of sequences
  Index M = N;

  std::string get(const char* name, const char* fallback) const {
    const auto found = options.find(name);
    return found == options.end() ? fallback : found->second;
  }
  bool is(const char* name, const char* value, const char* fallback) const { return get(name, fallback) == value; }
  bool conv() const { return is("variant", "conv", "full"); }
  Index size() const { return std::stoll(get("size", "3")); }
  Index places() const { return is("dims", "1", "2") ? size() : size() * size(); }
  AttentionShape grid() const {
    return {.grid_height = height, .grid_width = width, .longest = longest, .whole = longest == 0};
  }
};

/// Returns w' of a head: w, or w normalised, scaled and shifted.
std::vector<double> reparameterised(const AftCase& c, const Tensors& x, Index head) {
  const Index P = c.places();
  const double n = static_cast<double>(P);
  std::vector<double> w(x.at("w").data() + head * P, x.at("w").data() + (head + 1) * P);
  if (!c.is("reparam", "true", "true")) return w;
  double mean = 0, variance = 0;
  for (const double value : w) mean += value / n;
  for (const double value : w) variance += (value - mean) * (value - mean) / n;
  for (double& value : w) value = x.at("gain")[head] * (value - mean) / std::sqrt(variance + 1e-5) + x.at("bias")[head];
  return w;
}

/// Returns the biases used. With `gumbel`, evaluation uses only the largest bias, and training multiplies each bias by
/// its sample.
std::vector<double> biases_used(const AftCase& c, const Tensors& x, Index head) {
  std::vector<double> w = reparameterised(c, x, head);
  if (!c.is("sparsity", "gumbel", "none")) return w;
  if (!x.contains("noise")) {
    const auto largest = std::max_element(w.begin(), w.end());
    for (auto at = w.begin(); at != w.end(); ++at) *at *= at == largest;
    return w;
  }
  const double tau = std::stod(c.get("tau", "0.5"));
  std::vector<double> z;
  double sum = 0;
  for (std::size_t i = 0; i < w.size(); ++i)
    sum += z.emplace_back(std::exp((w[i] + x.at("noise")[head * c.places() + static_cast<Index>(i)]) / tau));
  for (std::size_t i = 0; i < w.size(); ++i) w[i] *= z[i] / sum;
  return w;
}

/// Returns the definition out = sigma(q) sum_s f e^k v / sum_s f e^k, channel by channel, with f = exp(bias), or 0 for
/// excluded keys; query=false omits sigma(q).
HeadDefinition aft_definition(const AftCase& c) {
  return [c](const DefinitionHead& x) {
    const std::vector<double> near = c.conv() ? biases_used(c, x.x, x.head) : std::vector<double>{};
    const bool conv = c.conv(), line = c.is("dims", "1", "2"), dense = c.is("param", "dense", "factored"),
               simple = c.is("variant", "simple", "full"), causal = c.is("causal", "true", "false"),
               masked = c.is("outside", "masked", "zero"), query = c.is("query", "true", "true");
    const Index window = std::stoll(c.get("window", "1000")), size = c.size(), reach = size / 2, width = c.width;
    const Tensor<double>*const w = conv || simple ? nullptr : &x.x.at(dense ? "w" : "u"), *const p =
                                                                                              conv || simple || dense
                                                                                                  ? nullptr
                                                                                                  : &x.x.at("p");
    const auto inside = [&](Index t, Index s) {
      if (!conv) return std::abs(t - s) < window;
      if (line) return std::abs(t - s) <= reach;
      return std::abs(t / width - s / width) <= reach && std::abs(t % width - s % width) <= reach;
    };
    const auto bias = [&](Index t, Index s) {
      if (conv && line) return near[static_cast<std::size_t>(s - t + reach)];
      if (conv)
        return near[static_cast<std::size_t>((s / width - t / width + reach) * size + s % width - t % width + reach)];
      if (simple) return 0.0;
      if (dense) return (*w)[t * w->shape()[1] + s];
      double sum = 0;
      const Index rank = w->shape()[1];
      for (Index r = 0; r < rank; ++r) sum += (*w)[t * rank + r] * (*p)[s * rank + r];
      return sum;
    };
    SlowMatrix out(x.N(), c.d);
    for (Index t = 0; t < x.N(); ++t)
      for (Index e = 0; e < c.d; ++e) {
        double numerator = 0, denominator = 0;
        for (Index s = 0; s < x.M(); ++s) {
          if (causal && s > t) continue;
          if (!inside(t, s) && masked) continue;
          const double f = std::exp(x.k(s, conv ? 0 : e) + (inside(t, s) ? bias(t, s) : 0));
          numerator += f * x.v(s, e), denominator += f;
        }
        out(t, e) = numerator / denominator;
        if (query) out(t, e) /= 1 + std::exp(-x.q(t, e));
      }
    return DefinedHead{SlowMatrix(1, 1), out};  // AFT has no map
  };
}

Tensors aft_operands(const AftCase& c) {
  const Index H = c.conv() ? 2 : 1, N = c.N, P = c.size(), rows = std::max(N, c.longest),
              columns = std::max(c.M, c.longest);
  Tensors x{{"q", random_tensor({2, H, N, c.d}, 1, 2)},
            {"k", random_tensor({2, H, c.M, c.conv() ? 1 : c.d}, 2, 2)},
            {"v", random_tensor({2, H, c.M, c.d}, 3)},
            {"dout", random_tensor({2, H, N, c.d}, 4)}};
  if (c.conv()) {
    x["w"] = random_tensor(c.is("dims", "1", "2") ? Shape{H, P} : Shape{H, P, P}, 5, 2);
    if (c.is("reparam", "true", "true")) x["gain"] = random_tensor({H}, 6, 2), x["bias"] = random_tensor({H}, 7, 2);
  } else if (c.is("param", "dense", "factored")) {
    x["w"] = random_tensor({rows, columns}, 5, 2);
  } else if (!c.is("variant", "simple", "full")) {
    const Index rank = std::stoll(c.get("rank", "128"));
    x["u"] = random_tensor({rows, rank}, 6), x["p"] = random_tensor({columns, rank}, 7);
  }
  return x;
}

/// Returns the derivative of f() with respect to x; errors are 1e-12 from truncation, 1e-10 from rounding.
template <class F>
double central_difference(double& x, const F& f) {
  const double before = x, h = 1e-6;
  x = before + h;
  const double above = f();
  x = before - h;
  const double below = f();
  x = before;
  return (above - below) / (2 * h);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(aft_by_definition)

BOOST_AUTO_TEST_CASE(every_variant) {
  std::vector<AftCase> cases;
  for (const char* query : {"true", "false"}) {
    for (const char* causal : {"true", "false"}) {
      const auto add = [&](OptionValues options, Index N = 7) {
        options["query"] = query, options["causal"] = causal;
        cases.push_back({options, N});
      };
      add({{"variant", "simple"}});
      add({{"param", "dense"}});
      add({{"rank", "2"}}, 1);
      for (const char* rank : {"1", "3"}) add({{"rank", rank}});
      for (const char* window : {"0", "1", "3", "9"}) {
        add({{"variant", "local"}, {"window", window}, {"param", "dense"}});
        add({{"variant", "local"}, {"window", window}, {"rank", "2"}});
        if (std::string(window) == "0") continue;
        add({{"variant", "local"}, {"window", window}, {"param", "dense"}, {"outside", "masked"}});
        add({{"variant", "local"}, {"window", window}, {"rank", "2"}, {"outside", "masked"}});
      }
    }
    for (const char* outside : {"zero", "masked"})
      for (const char* reparam : {"true", "false"})
        for (const char* sparsity : {"none", "entropy", "gumbel"})
          for (const char* size : {"1", "3", "5"}) {
            if (std::string(size) != "3" && std::string(sparsity) != "none") continue;
            const OptionValues options{{"variant", "conv"},  {"query", query},       {"outside", outside},
                                       {"reparam", reparam}, {"sparsity", sparsity}, {"size", size}};
            OptionValues line = options;
            line["dims"] = "1";
            cases.push_back({options, 12, 3, 4});
            cases.push_back({line, 7});
          }
  }
  // If keys outside the window are masked, `bias` cancels, so its exact gradient is 0. In float its gradient is a
  // rounding error, about 1e-7, which must be below the tolerance times a hundredth of the largest result.
  for (const AftCase& c : cases) check_definition("aft", c.options, aft_operands(c), aft_definition(c), c.grid(), 1e-4);
}

// Without causal=true, all queries attend to all keys, whatever their number. A factored bias for few keys of many
// channels is computed once per step, otherwise for each image.
BOOST_AUTO_TEST_CASE(other_numbers_of_keys) {
  for (const OptionValues& options : {OptionValues{{"param", "dense"}}, {{"rank", "2"}}, {{"variant", "simple"}}})
    for (const auto& [N, M] : {std::pair<Index, Index>{5, 9}, {9, 5}, {20, 30}})
      for (const Index d : {1, 7}) {
        AftCase c{options, N, 0, 0, d};
        c.M = M;
        check_definition("aft", c.options, aft_operands(c), aft_definition(c), {}, 1e-4);
      }
}

// A sequence shorter than the longest uses the first rows and columns of w, and the first rows of u and p. If any
// sequence of a batch is shorter, one of the full length does not use a prepared bias either.
BOOST_AUTO_TEST_CASE(shorter_sequences) {
  for (const char* causal : {"true", "false"})
    for (const OptionValues& options : {OptionValues{{"param", "dense"}},
                                        {{"rank", "2"}},
                                        {{"variant", "local"}, {"window", "5"}, {"param", "dense"}},
                                        {{"variant", "local"}, {"window", "3"}, {"rank", "2"}},
                                        {{"variant", "simple"}}})
      for (const Index N : {1, 6, 10}) {
        AftCase c{options, N};
        c.options["causal"] = causal, c.longest = 10;
        check_definition("aft", c.options, aft_operands(c), aft_definition(c), c.grid(), 1e-4);
      }
}

// In training, each bias is multiplied by a sample computed from the given noise.
BOOST_AUTO_TEST_CASE(gumbel_samples_in_training) {
  for (const char* reparam : {"true", "false"})
    for (const char* tau : {"0.3", "0.5", "2"}) {
      const AftCase c{{{"variant", "conv"}, {"sparsity", "gumbel"}, {"reparam", reparam}, {"tau", tau}}, 12, 3, 4};
      Tensors x = aft_operands(c);
      x["noise"] = random_tensor({2, 3, 3}, 8, 2);
      const auto mechanism = make_mechanism("aft", c.options);
      AttentionShape shape = c.grid();
      shape.heads = 2, shape.queries = shape.keys = c.N, shape.width = shape.value_width = c.d;
      Tape<double> tape({.training = true, .random = RandomStream(1)});
      const auto input = [&](const char* name) { return tape.input(std::as_const(x.at(name)).view()); };
      const Var<double> q = input("q"), k = input("k"), v = input("v");
      std::vector<Var<double>> own;
      for (const ParameterSpec& spec : mechanism->parameters(shape)) own.push_back(input(spec.name.c_str()));
      const std::span<const Var<double>> parameters(own);
      const Var<double> out =
          attention<double>(*mechanism, q, k, v, shape, parameters, std::as_const(x.at("noise")).view());
      tape.backward(out, std::as_const(x.at("dout")).view());
      const auto defined = [&](const Tensors& of, Index b, Index h) { return aft_definition(c)({of, b, h}).out; };
      for (Index head = 0; head < 4; ++head) {
        const SlowMatrix expected = defined(x, head / 2, head % 2);
        for (Index i = 0; i < c.N * c.d; ++i)
          BOOST_TEST(std::abs(out.data()[head * c.N * c.d + i] - expected.values[static_cast<std::size_t>(i)]) < 1e-13);
      }
      const auto value = [&] {
        double sum = 0;
        for (Index head = 0; head < 4; ++head) {
          const SlowMatrix of = defined(x, head / 2, head % 2);
          for (Index i = 0; i < c.N * c.d; ++i)
            sum += of.values[static_cast<std::size_t>(i)] * x.at("dout")[head * c.N * c.d + i];
        }
        return sum;
      };
      std::size_t number = 0;
      for (const ParameterSpec& spec : mechanism->parameters(shape)) {
        const View<const double> gradient = tape.gradient(own[number++]);
        for (Index i = 0; i < gradient.size(); ++i) {
          const double difference = central_difference(x.at(spec.name)[i], value);
          BOOST_TEST(std::abs(gradient[i] - difference) < 1e-8,
                     spec.name << "[" << i << "], tau " << tau << ": " << gradient[i] << ", " << difference);
        }
      }
    }
}

// The penalty is coef times the sum over heads of the entropies of softmax(w'); its gradient is multiplied by the given
// factor, here 2.
BOOST_AUTO_TEST_CASE(the_penalty_is_an_entropy) {
  for (const char* reparam : {"true", "false"}) {
    const AftCase c{{{"variant", "conv"}, {"sparsity", "entropy"}, {"coef", "0.3"}, {"reparam", reparam}}, 12, 3, 4};
    Tensors x = aft_operands(c);
    const auto mechanism = make_mechanism("aft", c.options);
    const AttentionShape shape{2, 12, 12, 3, 3, 3, 4, false};
    const auto expected = [&] {
      double total = 0;
      for (Index h = 0; h < 2; ++h) {
        const std::vector<double> w = reparameterised(c, x, h);
        double sum = 0;
        for (const double value : w) sum += std::exp(value);
        for (const double value : w) total -= 0.3 * std::exp(value) / sum * (value - std::log(sum));
      }
      return total;
    };
    std::vector<View<const double>> own;
    std::vector<Tensor<double>> gradients;
    std::vector<View<double>> views;
    const std::vector<ParameterSpec> specs = mechanism->parameters(shape);
    for (const ParameterSpec& spec : specs) {
      own.push_back(std::as_const(x.at(spec.name)).view());
      gradients.emplace_back(spec.shape);
    }
    for (Tensor<double>& gradient : gradients) views.push_back(gradient.view());
    double penalty = 0;
    mechanism->penalty_term()->penalty(AttentionPenalty<double>{shape, own, 2.0, views, &penalty});
    BOOST_TEST(std::abs(penalty - expected()) < 1e-13);
    for (std::size_t t = 0; t < specs.size(); ++t)
      for (Index i = 0; i < gradients[t].size(); ++i) {
        const double difference = central_difference(x.at(specs[t].name)[i], expected);
        BOOST_TEST(std::abs(gradients[t][i] - 2 * difference) < 1e-8, specs[t].name << "[" << i << "]");
      }
  }
}

BOOST_AUTO_TEST_SUITE_END()
