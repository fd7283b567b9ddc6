// Costs as JSON; the multiplications of a small model are counted by hand.
#include "heed/analysis/cost_json.h"

#include "heed/io/json.h"
#include "heed/nn/vit.h"

#include <boost/test/unit_test.hpp>

#include <array>
#include <cmath>
#include <string>
#include <tuple>

using namespace heed;

namespace {

/// Returns the cost of a model of one token of 2 channels. Its forward pass has 2 multiplications for the patch, 12 for
/// q, k and v, 4 in attention, 4 for attention's projection, 4 * `hidden` in the feed-forward layers, and 8 for four
/// classes.
ModelCost one_token_cost(Index hidden) {
  ModelConfig m;
  m.image = 1, m.channels = 1, m.patch = 1, m.dim = 2, m.depth = 1, m.heads = 1, m.hidden = hidden, m.classes = 4;
  m.pool = "mean";
  return cost_of(VisionTransformer(m, {}));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(cost_json)

// The backward pass has two products for each forward one, except that images get no gradient.
BOOST_AUTO_TEST_CASE(a_file_has_both_conventions_and_the_query) {
  const ModelCost cost = one_token_cost(3);
  for (const Convention ignored : {Convention::contractions, Convention::all}) {
    const Json file =
        Json::parse(cost_file(cost, {ignored, CostPass::step, CostGroup::layer, 3}, default_energy_table()));
    BOOST_TEST(file.at("version").text() == HEED_VERSION);
    for (const std::string name : {"contractions", "all"}) {
      const Json& json = file.at(name);
      BOOST_TEST(json.at("convention").text() == name);
      BOOST_TEST(json.at("pass").text() == "step");
      BOOST_TEST(json.at("batch").integer() == 3);
      BOOST_TEST(json.at("params").integer() == 71);
      BOOST_TEST(json.at("total").at("params").integer() == 71);
      BOOST_TEST(json.at("attention_exp").integer() == 1);
      BOOST_TEST(json.at("activation_bytes").integer() == 57 * 4 * 3);  // see tests/analysis/model_cost.cpp
      // One exp in softmax, and one in the derivative of gelu for each of three channels.
      BOOST_TEST(json.at("total").at("exp").integer() == (name == "all" ? 4 : 0));
    }
    const Json& products = file.at("contractions").at("total");
    BOOST_TEST(products.at("mul").integer() == 3 * 42 - 2);
    BOOST_TEST(products.at("add").integer() == 3 * 42 - 2);
    BOOST_TEST(std::abs(products.at("energy_pj").number() - 4.6 * (3 * 42 - 2)) < 1e-9);
  }
}

BOOST_AUTO_TEST_CASE(each_model_has_its_name_and_its_cost) {
  const std::array models{one_token_cost(3), one_token_cost(5)};
  const std::array<std::string, 2> names{"narrow", "wide"};
  for (const auto& [pass, name, sweeps] : {std::tuple(CostPass::forward, "forward", 1),
                                           {CostPass::backward, "backward", 2},
                                           {CostPass::step, "step", 3}}) {
    const Json json = Json::parse(
        costs_json(names, models, {Convention::contractions, pass, CostGroup::layer, 1}, default_energy_table()));
    const Json& list = json.at("models");
    BOOST_REQUIRE(list.items().size() == 2u);
    for (std::size_t i = 0; i < 2; ++i) {
      const Json& model = list.items()[i];
      const Index forward = i == 0 ? 42 : 50;
      BOOST_TEST(model.at("model").text() == names[i]);
      BOOST_TEST(model.at("pass").text() == name);
      BOOST_TEST(model.at("total").at("mul").integer() == sweeps * forward - (sweeps > 1 ? 2 : 0));
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
