// The DINO head compared with its definition, row by row.
#include "heed/nn/dino.h"
#include "heed/tape/preparation.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

BOOST_AUTO_TEST_SUITE(nn_dino_head)

// y = mlp.4 gelu(mlp.2 gelu(mlp.0 x)); logit k is g_k (v_k / |v_k|) . y / |y|, with g_k = 1 in a normalised layer. Sums
// of at most six terms of order 1.
BOOST_AUTO_TEST_CASE(logits_by_definition) {
  constexpr Index rows = 3, dim = 6;
  using List = std::vector<double>;
  for (const bool norm_last_layer : {false, true}) {
    DinoConfig config;
    config.hidden = 5, config.bottleneck = 4, config.out_dim = 7, config.norm_last_layer = norm_last_layer;
    ParameterList list;
    const DinoHead head(list, "h.", dim, config);
    BOOST_TEST((list.find("h.last_layer.weight_g") == -1) == norm_last_layer);
    Parameters<double> parameters(list);
    for (Index i = 0; i < parameters.trainable_size(); ++i) parameters.data()[i] = RandomStream(3).normal(i);
    prepare(PreparationPass<double>{&parameters});
    const auto at = [&](const std::string& name) { return std::as_const(parameters)[list.find("h." + name)]; };
    const auto layer = [&](const std::string& name, const List& x) {
      const View<const double> weight = at(name + ".weight"), bias = at(name + ".bias");
      List y(bias.begin(), bias.end());
      for (std::size_t o = 0; o < y.size(); ++o)
        for (std::size_t i = 0; i < x.size(); ++i) y[o] += weight[static_cast<Index>(o * x.size() + i)] * x[i];
      return y;
    };
    const auto bent = [](List x) {
      for (double& h : x) h = h / 2 * std::erfc(-h / std::sqrt(2.0));
      return x;
    };
    const auto length = [](const double* x, Index n) {
      double square = 0;
      for (Index i = 0; i < n; ++i) square += x[i] * x[i];
      return std::sqrt(square);
    };
    Tensor<double> x(Shape{rows, dim});
    for (Index i = 0; i < x.size(); ++i) x[i] = RandomStream(4).normal(i);
    Tape<double> tape({.parameters = &parameters, .prepared = true});
    const Var<double> logits = head(tape.constant(std::as_const(x).view()));
    BOOST_TEST_REQUIRE(to_string(logits.shape()) == "[3, 7]");
    for (Index r = 0; r < rows; ++r) {
      const List y = layer(
          "mlp.4", bent(layer("mlp.2", bent(layer("mlp.0", List(x.data() + r * dim, x.data() + (r + 1) * dim))))));
      for (Index k = 0; k < 7; ++k) {
        const double* const v = at("last_layer.weight_v").data() + 4 * k;
        double dot = 0;
        for (Index i = 0; i < 4; ++i) dot += v[i] * y[static_cast<std::size_t>(i)];
        const double g = norm_last_layer ? 1 : at("last_layer.weight_g")[k];
        const double expected = g * dot / (length(v, 4) * length(y.data(), 4));
        BOOST_TEST(std::abs(logits.data()[7 * r + k] - expected) < 1e-13, "row " << r << ", logit " << k);
      }
    }
  }
}

// W is computed from v and g before each step. It is in no file, and neither decays nor has an optimizer state.
BOOST_AUTO_TEST_CASE(tensors_of_the_head) {
  DinoConfig config;
  config.hidden = 5, config.bottleneck = 4, config.out_dim = 7, config.norm_last_layer = false;
  ParameterList list;
  const DinoHead head(list, "h.", 6, config);
  const auto spec = [&](const std::string& name) { return list[list.find("h." + name)]; };
  BOOST_TEST((spec("last_layer.weight_v").initial == Initial::uniform(0.5)));
  BOOST_TEST((spec("last_layer.weight_g").initial == Initial::constant(1)));
  BOOST_TEST((spec("last_layer.weight_g").shape == Shape{7, 1}));
  for (const char* name : {"last_layer.weight_v", "last_layer.weight_g", "mlp.0.weight"})
    BOOST_TEST((spec(name).trainable && spec(name).decay && !spec(name).prepared), name);
  BOOST_TEST((spec("last_layer.weight").prepared && !spec("last_layer.weight").trainable));
  BOOST_TEST((spec("mlp.2.weight").shape == Shape{5, 5} && spec("mlp.4.weight").shape == Shape{4, 5}));
}

BOOST_AUTO_TEST_SUITE_END()
