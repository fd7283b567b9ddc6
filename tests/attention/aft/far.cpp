// AFT with keys far from the origin or from each other, compared with the formula, which is computed pair by pair in
// long double after subtraction of each query's largest exponent.
#include "support/mechanism.h"

#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <cmath>
#include <optional>

using namespace heed;

namespace {

struct Setting {
  std::string name;
  OptionValues options;
  Index height = 0, width = 0;

  bool has(const std::string& option, const std::string& value) const {
    const auto at = options.find(option);
    return at != options.end() && at->second == value;
  }
  bool conv() const { return has("variant", "conv"); }
  bool one_dimension() const { return has("dims", "1"); }
  Index heads() const { return conv() ? 2 : 1; }
  Index key_width() const { return conv() ? 1 : channels; }
  /// Returns the number of cells, or tokens, on each side of a query that have a bias.
  Index reach() const {
    if (conv()) return one_dimension() ? 2 : 1;
    return options.contains("window") ? std::stoll(options.at("window")) - 1 : tokens;
  }
  Shape biases() const {
    if (conv()) return one_dimension() ? Shape{2, 5} : Shape{2, 3, 3};
    return {tokens, tokens};
  }

  /// Returns the index in w of the bias of key s for query t of head h: -1 for none, nothing if t does not attend to s.
  std::optional<Index> bias(Index h, Index t, Index s) const {
    if (has("causal", "true") && s > t) return {};
    const Index dy = one_dimension() || !conv() ? 0 : s / width - t / width;
    const Index dx = one_dimension() || !conv() ? s - t : s % width - t % width, r = reach();
    if (std::abs(dx) > r || std::abs(dy) > r || has("variant", "simple"))
      return has("outside", "masked") ? std::nullopt : std::optional<Index>(-1);
    if (!conv()) return t * tokens + s;
    return one_dimension() ? h * 5 + dx + 2 : h * 9 + (dy + 1) * 3 + dx + 1;
  }

  static constexpr Index tokens = 72, channels = 3;
};

const Setting settings[] = {
    {"full", {{"param", "dense"}}},
    {"full, causal", {{"param", "dense"}, {"causal", "true"}}},
    {"simple", {{"variant", "simple"}}},
    {"simple, causal", {{"variant", "simple"}, {"causal", "true"}}},
    {"local 2", {{"variant", "local"}, {"window", "2"}, {"param", "dense"}}},
    {"local 9", {{"variant", "local"}, {"window", "9"}, {"param", "dense"}}},
    {"local 9, causal", {{"variant", "local"}, {"window", "9"}, {"param", "dense"}, {"causal", "true"}}},
    {"local 2, masked", {{"variant", "local"}, {"window", "2"}, {"param", "dense"}, {"outside", "masked"}}},
    {"local 9, masked", {{"variant", "local"}, {"window", "9"}, {"param", "dense"}, {"outside", "masked"}}},
    {"conv", {{"variant", "conv"}, {"reparam", "false"}}, 8, 9},
    {"conv, masked", {{"variant", "conv"}, {"reparam", "false"}, {"outside", "masked"}}, 8, 9},
    {"conv 1-D", {{"variant", "conv"}, {"reparam", "false"}, {"dims", "1"}, {"size", "5"}}},
    {"conv 1-D, masked",
     {{"variant", "conv"}, {"reparam", "false"}, {"dims", "1"}, {"size", "5"}, {"outside", "masked"}}}};

/// Returns q, v and dout in [-1, 1), k in [-keys, keys) and w in [-biases, biases).
Tensors operands(const Setting& s, double keys, double biases) {
  const Shape values{1, s.heads(), s.tokens, s.channels};
  Tensors t;
  t["q"] = random_tensor(values, 1), t["v"] = random_tensor(values, 3), t["dout"] = random_tensor(values, 9);
  t["k"] = random_tensor({1, s.heads(), s.tokens, s.key_width()}, 2, keys);
  if (!s.has("variant", "simple")) t["w"] = random_tensor(s.biases(), 4, biases);
  return t;
}

template <class T>
Tensors run(const Setting& s, const Tensors& given) {
  return run_mechanism<T>("aft", s.options, given, {.grid_height = s.height, .grid_width = s.width});
}

/// Computes out and all gradients directly by equations 2, 4, 5 and 6.
Tensors expected(const Setting& s, const Tensors& given) {
  Tensors result;
  for (const char* name : {"q", "k", "v", "w"})
    if (given.contains(name)) result[std::string("d") + name] = Tensor<double>(given.at(name).shape());
  result["out"] = Tensor<double>(given.at("v").shape());
  for (Index h = 0; h < s.heads(); ++h)
    for (Index t = 0; t < s.tokens; ++t)
      for (Index c = 0; c < s.channels; ++c) {
        const auto value_at = [&](Index token) { return (h * s.tokens + token) * s.channels + c; };
        const auto key_at = [&](Index token) { return s.conv() ? h * s.tokens + token : value_at(token); };
        const auto exponent = [&](Index token) -> std::optional<long double> {
          const auto bias = s.bias(h, t, token);
          if (!bias) return {};
          const long double k = given.at("k")[key_at(token)];
          return *bias < 0 ? k : k + given.at("w")[*bias];
        };
        std::vector<long double> p;
        for (Index token = 0; token < s.tokens; ++token) p.push_back(exponent(token).value_or(-INFINITY));
        const long double largest = *std::max_element(p.begin(), p.end());
        long double mass = 0, y = 0;
        for (long double& weight : p) mass += weight = weight < largest - 200 ? 0 : std::exp(weight - largest);
        for (Index token = 0; token < s.tokens; ++token)
          y += (p[static_cast<std::size_t>(token)] /= mass) * given.at("v")[value_at(token)];
        const long double gate = 1 / (1 + std::exp(-static_cast<long double>(given.at("q")[value_at(t)])));
        const long double dout = given.at("dout")[value_at(t)], dy = gate * dout;
        result["out"][value_at(t)] = static_cast<double>(gate * y);
        result["dq"][value_at(t)] = static_cast<double>(dy * y * (1 - gate));
        for (Index token = 0; token < s.tokens; ++token) {
          const long double dv = p[static_cast<std::size_t>(token)] * dy;
          const long double dx = dv * (given.at("v")[value_at(token)] - y);
          result["dv"][value_at(token)] += static_cast<double>(dv);
          result["dk"][key_at(token)] += static_cast<double>(dx);
          if (const auto bias = s.bias(h, t, token); bias.value_or(-1) >= 0)
            result["dw"][*bias] += static_cast<double>(dx);
        }
      }
  return result;
}

/// Sets k of a token in all heads and channels.
void set_key(Tensors& t, Index token, double value) {
  const Index width = t["k"].shape()[3];
  for (Index i = 0; i < t["k"].size(); ++i)
    if (i / width % Setting::tokens == token) t["k"][i] = value;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(aft_far)

BOOST_AUTO_TEST_CASE(near_keys_are_the_formula) {
  for (const Setting& s : settings) {
    const Tensors t = operands(s, 1, 1);
    const Tensors result = expected(s, t);
    check_same(run<double>(s, t), result, 1e-13, s.name);
    check_same(run<float>(s, t), result, 1e-5, s.name);
  }
}

/// Checks huge keys, for which the rounding error of k + w exceeds the range of exp: the largest key that a query
/// attends to has all the weight, whatever the biases. The cases include biases for which k + w is exact.
template <class T>
void check_huge(double huge, double bias, double tolerance) {
  for (const Setting& s : settings)
    for (const double sign : {1.0, -1.0}) {
      Tensors t = operands(s, 1, 1);
      set_key(t, 11, huge / 2), set_key(t, 30, huge), set_key(t, 31, -huge), set_key(t, 60, huge / 4);
      if (t.contains("w"))
        for (double& w : t["w"]) w = sign * static_cast<float>(bias + w);
      check_same(run<T>(s, t), expected(s, t), tolerance,
                 s.name + ", k " + std::to_string(huge) + ", w " + std::to_string(sign * bias));
    }
}

BOOST_AUTO_TEST_CASE(the_largest_of_huge_keys_has_all_the_weight) {
  for (const double huge : {1e8, 3e9, 3e37}) check_huge<float>(huge, 100, 3e-5);
  check_huge<float>(3e10, 1100, 1.5e-4);
  for (const double huge : {1e15, 1e19, 1e307}) check_huge<double>(huge, 800, 1e-12);
}

// If a key has all the weight in every mean that contains it, these means equal its value, and its gradient is zero.
// This holds for values far from the origin, too, since the gradient is not a difference of sums.
BOOST_AUTO_TEST_CASE(one_key_with_all_the_weight_has_no_gradient) {
  for (const Setting& s : settings) {
    if (s.has("outside", "masked") || s.name.starts_with("full")) continue;
    Tensors t = operands(s, 1, 1);
    for (double& v : t["v"]) v = static_cast<float>(v + 100);
    set_key(t, 20, 40);
    const Tensors result = run<float>(s, t);
    const Tensor<double>& dk = result.at("dk");
    const Index width = dk.shape()[3];
    for (Index i = 0; i < dk.size(); ++i)
      if (i / width % Setting::tokens == 20) BOOST_TEST(std::abs(dk[i]) < 1e-9, s.name << ": dk is " << dk[i]);
  }
}

// Equal huge keys: if every pair of a query and a key has a bias, the biases determine the weights.
BOOST_AUTO_TEST_CASE(equal_huge_keys_are_told_apart_by_their_biases) {
  const Setting& full = settings[0];
  Tensors t = operands(full, 1, 5);
  for (double& w : t["w"]) w = static_cast<float>(w + 95);
  for (Index token = 0; token < Setting::tokens; ++token) set_key(t, token, 3e9);
  const Tensors result = expected(full, t);
  check_same(run<float>(full, t), result, 1e-5, "3e9");
  check_same(run<double>(full, t), result, 1e-12, "3e9");
}

// If not all pairs have biases, the biases are lost in the rounding of huge keys. All results are finite nevertheless.
BOOST_AUTO_TEST_CASE(equal_huge_keys_leave_everything_finite) {
  for (const Setting& s : settings)
    for (const double huge : {3e9, -3e9, 4294967040.0, 1e30}) {
      Tensors t = operands(s, 1, 700);
      for (Index token = 0; token < Setting::tokens; ++token) set_key(t, token, huge);
      const Tensors in_float = run<float>(s, t);
      check_same(in_float, in_float, 0, s.name + ", equal keys of " + std::to_string(huge));
    }
}

BOOST_AUTO_TEST_SUITE_END()
