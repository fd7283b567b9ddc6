// Pictures of mechanisms: maps reproduce the output from v, and pictures have the declared shapes. Pictures of single
// mechanisms are compared with hand-calculated values.
#include "support/mechanism.h"

#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/pictures.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

constexpr AttentionShape grid{.grid_height = 2, .grid_width = 4};
constexpr Index images = 2, heads = 3, dim = 12, N = 8;

/// Returns random operands and parameters of a mechanism on `grid`; empty if it does not support the grid.
Tensors operands(const Mechanism& mechanism) {
  const AttentionLayout layout = mechanism.layout(dim, heads);
  const AttentionShape shape = layout.among(N, grid);
  try {
    mechanism.check(shape);
  } catch (const Error&) {
    return {};
  }
  Tensors x;
  const auto add = [&](const char* name, Index count, Index width) {
    if (width > 0) x[name] = random_tensor({images, count, N, width}, x.size() + 1, 2);
  };
  add("q", layout.heads, layout.query_width);
  add("k", layout.key_heads, layout.key_width);
  add("v", layout.key_heads, layout.value_width);
  for (const ParameterSpec& spec : mechanism.parameters(shape)) {
    Tensor<double>& own = x[spec.name] = random_tensor(spec.shape, x.size() + 1);
    if (!spec.trainable) fill_initial(spec.initial, RandomStream(1), own.view());
  }
  return x;
}

/// Calls f(label, mechanism, options, operands) for each variant of each mechanism that supports `grid`.
template <class F>
void for_each_variant(const F& f) {
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) {
      const auto mechanism = make_mechanism(entry.name, options);
      std::string label = entry.name;
      for (const auto& [option, value] : options) label += " " + option + "=" + value;
      if (const Tensors x = operands(*mechanism); !x.empty()) f(label, *mechanism, options, x);
    }
}

/// Returns the products of a [.., rows, n] and b [.., n, columns]; b may have a single head, shared by all of a.
std::vector<double> product(const Tensor<double>& a, const Tensor<double>& b) {
  const Index count = a.shape()[0], of_a = a.shape()[1], of_b = b.shape()[1];
  const Index rows = a.shape()[2], n = a.shape()[3], columns = b.shape()[3];
  std::vector<double> result;
  for (Index i = 0; i < count * of_a; ++i)
    for (Index r = 0; r < rows; ++r)
      for (Index c = 0; c < columns; ++c) {
        double sum = 0;
        for (Index l = 0; l < n; ++l)
          sum += a[(i * rows + r) * n + l] * b[((i / of_a * of_b + i % of_a % of_b) * n + l) * columns + c];
        result.push_back(sum);
      }
  return result;
}

/// Returns x with each matrix transposed.
Tensor<double> transpose(const Tensor<double>& x) {
  const Shape& s = x.shape();
  Tensor<double> y(Shape{s[0], s[1], s[3], s[2]});
  for (Index i = 0; i < s[0] * s[1]; ++i)
    for (Index r = 0; r < s[2]; ++r)
      for (Index c = 0; c < s[3]; ++c) y[(i * s[3] + c) * s[2] + r] = x[(i * s[2] + r) * s[3] + c];
  return y;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(pictures)

BOOST_AUTO_TEST_CASE(maps_are_what_multiplies_v) {
  for_each_variant(
      [](const std::string& label, const Mechanism& mechanism, const OptionValues& options, const Tensors& x) {
        if (!mechanism.maps() || mechanism.maps()->map_traits().partial) return;
        BOOST_TEST_CONTEXT(label) {
          const Tensors results = run_mechanism<double>(mechanism.name(), options, x, grid);
          if (mechanism.maps()->map_traits().axes == MapAxes::tokens)
            check_near(results.at("out"), product(results.at("map"), x.at("v")), 1e-9);
          else
            check_near(transpose(results.at("out")), product(results.at("map"), transpose(x.at("v"))), 1e-9);
        }
      });
}

BOOST_AUTO_TEST_CASE(partial_maps_do_not_give_the_output) {
  int partial = 0;
  for_each_variant(
      [&](const std::string& label, const Mechanism& mechanism, const OptionValues& options, const Tensors& x) {
        if (!mechanism.maps() || !mechanism.maps()->map_traits().partial) return;
        ++partial;
        const Tensors results = run_mechanism<double>(mechanism.name(), options, x, grid);
        const std::vector<double> products = product(results.at("map"), x.at("v"));
        double most = 0;
        for (std::size_t i = 0; i < products.size(); ++i)
          most = std::max(most, std::abs(products[i] - results.at("out")[static_cast<Index>(i)]));
        BOOST_TEST(most > 0.01, label);
      });
  BOOST_TEST(partial >= 2);
}

BOOST_AUTO_TEST_CASE(pictures_have_the_shapes_that_they_are_said_to_have) {
  for_each_variant(
      [](const std::string& label, const Mechanism& mechanism, const OptionValues& options, const Tensors& x) {
        const Tensors results = run_mechanism<float>(mechanism.name(), options, x, grid);
        for (const PictureInfo& info : picture_infos(mechanism)) BOOST_TEST_CONTEXT(label << ": " << info.name) {
            const Tensor<double>& picture = results.at("picture." + info.name);
            const Shape& s = picture.shape();
            BOOST_TEST(s.rank() == (info.axes == PictureAxes::tokens ? 2 : 3));
            if (info.axes != PictureAxes::matrix) BOOST_TEST(s[1] == N);
            if (info.axes == PictureAxes::pairs) BOOST_TEST(s[2] == N);
            for (const double number : picture) BOOST_TEST(std::isfinite(number));
          }
      });
}

BOOST_AUTO_TEST_CASE(a_mechanism_with_the_capability_has_pictures) {
  for (const MechanismEntry& entry : mechanisms())
    if (const auto mechanism = entry.make({}); mechanism->pictures())
      BOOST_TEST(!mechanism->pictures()->picture_infos().empty(), entry.name);
}

// Without the query's gate and with one key channel per group or head, AFT's weights are its attention map. They are
// computed from all biases at once, some of them -inf, unlike in the forward pass.
BOOST_AUTO_TEST_CASE(weights_of_aft_multiply_v) {
  for (OptionValues options : find_mechanism("aft").variants()) BOOST_TEST_CONTEXT(options.begin()->second) {
      options["query"] = "false";
      const auto mechanism = make_mechanism("aft", options);
      const Index width = mechanism->layout(dim, heads).key_width == 1 ? dim / heads : 4;
      const Index count = mechanism->layout(width * heads, heads).heads;
      const AttentionShape shape{.heads = count,
                                 .queries = N,
                                 .keys = N,
                                 .width = width,
                                 .value_width = width,
                                 .grid_height = 2,
                                 .grid_width = 4};
      Tensors x{{"q", random_tensor({1, count, N, width}, 1)},
                {"k", random_tensor({1, count, N, count == 1 ? width : 1}, 2, 3)},
                {"v", random_tensor({1, count, N, width}, 3)}};
      for (const ParameterSpec& spec : mechanism->parameters(shape))
        x[spec.name] = random_tensor(spec.shape, x.size() + 1, 2);
      const Tensors results = run_mechanism<float>("aft", options, x, grid);
      const Tensor<double>& weights = results.at("picture.weights");
      const Index parts = weights.shape()[0];
      BOOST_TEST(parts == (count == 1 ? width : count));
      Tensor<double> maps(Shape{1, parts, N, N});
      std::copy(weights.begin(), weights.end(), maps.begin());
      if (count > 1)
        check_near(results.at("out"), product(maps, x.at("v")), 1e-5);
      else
        for (Index c = 0; c < width; ++c)
          for (Index t = 0; t < N; ++t) {
            double sum = 0;
            for (Index s = 0; s < N; ++s) sum += maps[(c * N + t) * N + s] * x.at("v")[s * width + c];
            BOOST_TEST(std::abs(results.at("out")[t * width + c] - sum) < 1e-5);
          }
    }
}

// w = 10 t + s. Biases outside the window, |t - s| >= 2, and of keys that causal=true excludes are drawn as 0.
BOOST_AUTO_TEST_CASE(biases_of_local_aft) {
  Tensors x{{"q", tokens(3, 1, {0, 0, 0})}, {"k", tokens(3, 1, {0, 0, 0})}, {"v", tokens(3, 1, {1, 2, 3})}};
  x["w"] = Tensor<double>(Shape{3, 3}, {0, 1, 2, 10, 11, 12, 20, 21, 22});
  OptionValues options{{"variant", "local"}, {"window", "2"}, {"param", "dense"}};
  const std::vector<double> near{0, 1, 0, 10, 11, 12, 0, 21, 22};
  check_near(run_mechanism<float>("aft", options, x).at("picture.biases"), near);
  options["outside"] = "masked";
  check_near(run_mechanism<float>("aft", options, x).at("picture.biases"), near);
  options["causal"] = "true";
  check_near(run_mechanism<float>("aft", options, x).at("picture.biases"), {0, 0, 0, 10, 11, 0, 0, 21, 22});
}

// Exps of the channels k = (0, ln 2) and (ln 3, 0), divided by the largest, are (1/2, 1) and (1, 1/3).
BOOST_AUTO_TEST_CASE(keys_of_aft) {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  const Tensors x{
      {"q", tokens(2, 2, {0, 0, 0, 0})}, {"k", tokens(2, 2, {0, ln3, ln2, 0})}, {"v", tokens(2, 2, {1, 2, 3, 4})}};
  const Tensors results = run_mechanism<float>("aft", {{"variant", "simple"}}, x);
  check_near(results.at("picture.keys"), {0.5, 1, 1, 1.0 / 3}, 1e-6);
}

// Three queries and two keys. With k = 0, exps of w are the weights before their division by the sum of a row.
BOOST_AUTO_TEST_CASE(weights_of_aft_for_fewer_keys) {
  const double ln2 = std::log(2.0), ln3 = std::log(3.0);
  const Tensors x{{"q", tokens(3, 1, {0, 0, 0})}, {"k", tokens(2, 1, {0, 0})}, {"v", tokens(2, 1, {1, 2})}};
  Tensors dense = x, factored = x;
  dense["w"] = Tensor<double>(Shape{3, 2}, {0, ln2, ln3, 0, 0, 0});
  factored["u"] = Tensor<double>(Shape{3, 1}, {ln2, 0, ln3});
  factored["p"] = Tensor<double>(Shape{2, 1}, {1, 0});
  const Tensors of_w = run_mechanism<float>("aft", {{"param", "dense"}}, dense),
                of_factors = run_mechanism<float>("aft", {}, factored);
  BOOST_TEST((of_w.at("picture.weights").shape() == Shape{1, 3, 2}));
  check_near(of_w.at("picture.weights"), {1.0 / 3, 2.0 / 3, 0.75, 0.25, 0.5, 0.5}, 1e-6);
  check_near(of_w.at("picture.biases"), {0, ln2, ln3, 0, 0, 0}, 1e-6);
  check_near(of_factors.at("picture.weights"), {2.0 / 3, 1.0 / 3, 0.5, 0.5, 0.75, 0.25}, 1e-6);
  check_near(of_factors.at("picture.biases"), {ln2, 0, 0, 0, ln3, 0}, 1e-6);
}

// 18 channels form six groups of three, since eight or seven groups would not be of equal size. In channel c, exp of
// the second key is c + 1 times that of the first: the first is 1 / (c + 1) of the largest, and has 1 / (c + 2) of the
// weight. The weights are the same for all three queries.
BOOST_AUTO_TEST_CASE(groups_of_channels_of_aft) {
  constexpr Index channels = 18, queries = 3;
  std::vector<double> k(2 * channels);
  for (std::size_t c = 0; c < channels; ++c) k[channels + c] = std::log(static_cast<double>(c + 1));
  const Tensors results = run_mechanism<float>("aft", {{"variant", "simple"}},
                                               {{"q", tokens(queries, channels, std::vector<double>(3 * channels))},
                                                {"k", tokens(2, channels, k)},
                                                {"v", tokens(2, channels, std::vector<double>(2 * channels))}});
  std::vector<double> keys, weights;
  for (double c = 0; c < channels; c += 3) {
    const double first = (1 / (c + 2) + 1 / (c + 3) + 1 / (c + 4)) / 3;
    keys.insert(keys.end(), {(1 / (c + 1) + 1 / (c + 2) + 1 / (c + 3)) / 3, 1});
    for (Index t = 0; t < queries; ++t) weights.insert(weights.end(), {first, 1 - first});
  }
  BOOST_TEST((results.at("picture.keys").shape() == Shape{6, 2}));
  BOOST_TEST((results.at("picture.weights").shape() == Shape{6, queries, 2}));
  check_near(results.at("picture.keys"), keys, 1e-6);
  check_near(results.at("picture.weights"), weights, 1e-6);
}

// Each head has its own keys, (0, ln 2) and (ln 3, 0), and its own biases, one for each position of a key relative to
// the query: ln 5 on the left in head 0, ln 7 on the right in head 1. The pictures are of the last image.
BOOST_AUTO_TEST_CASE(heads_of_conv_aft) {
  Tensors x{{"q", random_tensor({2, 2, 2, 1}, 1)}, {"v", random_tensor({2, 2, 2, 1}, 2)}};
  x["k"] = Tensor<double>(Shape{2, 2, 2, 1}, {9, 8, 7, 6, 0, std::log(2.0), std::log(3.0), 0});
  x["w"] = Tensor<double>(Shape{2, 3}, {std::log(5.0), 0, 0, 0, 0, std::log(7.0)});
  const Tensors results =
      run_mechanism<float>("aft", {{"variant", "conv"}, {"dims", "1"}, {"reparam", "false"}}, x, {});
  check_near(results.at("picture.keys"), {0.5, 1, 1, 1.0 / 3}, 1e-6);
  check_near(results.at("picture.weights"), {1.0 / 3, 2.0 / 3, 5.0 / 7, 2.0 / 7, 0.3, 0.7, 0.75, 0.25}, 1e-6);
  BOOST_TEST((results.at("picture.biases").shape() == Shape{2, 1, 3}));
}

// The picture has the biases of a head at their positions in the window.
BOOST_AUTO_TEST_CASE(biases_of_conv_aft) {
  Tensors x = operands(*make_mechanism("aft", {{"variant", "conv"}, {"reparam", "false"}}));
  const Tensors results = run_mechanism<float>("aft", {{"variant", "conv"}, {"reparam", "false"}}, x, grid);
  const Tensor<double>& biases = results.at("picture.biases");
  BOOST_TEST((biases.shape() == Shape{heads, 3, 3}));
  for (Index i = 0; i < biases.size(); ++i) BOOST_TEST(biases[i] == x.at("w")[i]);
}

// The normalised channels of q are (3, 1) / 4 and (0, 4) / 4, so that its tokens are (3/4, 0) and (1/4, 1). k is q with
// its tokens swapped.
BOOST_AUTO_TEST_CASE(importance_in_sima) {
  const Tensors x{
      {"q", tokens(2, 2, {3, 0, 1, 4})}, {"k", tokens(2, 2, {1, 4, 3, 0})}, {"v", tokens(2, 2, {1, 2, 3, 4})}};
  const Tensors results = run_mechanism<float>("sima", {}, x);
  const double second = std::sqrt(17.0) / 4;
  check_near(results.at("picture.queries"), {0.75, second}, 1e-6);
  check_near(results.at("picture.keys"), {second, 0.75}, 1e-6);
}

// Two heads of two queries and three keys, with one channel; the option selects the norm.
BOOST_AUTO_TEST_CASE(importance_by_head_and_norm) {
  Tensors x{{"v", random_tensor({1, 2, 3, 1}, 1)}};
  x["q"] = Tensor<double>(Shape{1, 2, 2, 1}, {3, 1, -1, 1});
  x["k"] = Tensor<double>(Shape{1, 2, 3, 1}, {1, 1, 2, 0, 5, -5});
  const auto check = [&](const char* norm, const std::vector<double>& queries, const std::vector<double>& keys) {
    const Tensors results = run_mechanism<float>("sima", {{"norm", norm}}, x);
    BOOST_TEST((results.at("picture.queries").shape() == Shape{2, 2}));
    BOOST_TEST((results.at("picture.keys").shape() == Shape{2, 3}));
    check_near(results.at("picture.queries"), queries, 1e-6);
    check_near(results.at("picture.keys"), keys, 1e-6);
  };
  check("l1", {0.75, 0.25, 0.5, 0.5}, {0.25, 0.25, 0.5, 0, 0.5, 0.5});
  check("none", {3, 1, 1, 1}, {1, 1, 2, 0, 5, 5});
  const double ten = std::sqrt(10.0), six = std::sqrt(6.0), half = std::sqrt(0.5);
  check("l2", {3 / ten, 1 / ten, half, half}, {1 / six, 1 / six, 2 / six, 0, half, half});
}

// Two heads of one channel, in which the similarity of x and y is exp(-(x - y)^2 / 2). The landmarks are the first two
// of the three tokens that follow the class token. The ridge is added to the inverted matrix only, not to the
// similarities.
BOOST_AUTO_TEST_CASE(landmarks_of_each_head) {
  Tensors x{{"v", random_tensor({1, 2, 4, 1}, 1)}};
  x["q"] = Tensor<double>(Shape{1, 2, 4, 1}, {9, 0, 2, 5, 1, 1, 1, 4});
  const Tensors results = run_mechanism<float>("soft", {{"sampling", "first"}, {"landmarks", "2"}, {"ridge", "0.5"}}, x,
                                               {.class_token = 1});
  const auto g = [](double distance) { return std::exp(-distance * distance / 2); };
  BOOST_TEST((results.at("picture.landmarks").shape() == Shape{2, 2, 4}));
  check_near(results.at("picture.landmarks"), {g(9), 1, g(2), g(5), g(7), g(2), 1, g(3), 1, 1, 1, g(3), 1, 1, 1, g(3)},
             1e-6);
}

BOOST_AUTO_TEST_SUITE_END()
