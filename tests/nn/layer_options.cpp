// Options around a mechanism: qk_norm and gate. `heed probe model` compares their values with another implementation.
#include "heed/nn/vit.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;

namespace {

ModelConfig small_model() {
  ModelConfig model;
  model.image = 4, model.channels = 1, model.patch = 2, model.dim = 6, model.depth = 2, model.heads = 2;
  model.hidden = 5, model.classes = 3;
  return model;
}

void check_refused(const ModelConfig& model, const AttentionConfig& attention, const std::string& message) {
  BOOST_CHECK_EXCEPTION(VisionTransformer(model, attention), Error, [&](const Error& error) {
    BOOST_TEST(error.what() == message);
    return true;
  });
}

}  // namespace

BOOST_AUTO_TEST_SUITE(layer_options)

BOOST_AUTO_TEST_CASE(tensors_appear_where_options_ask_for_them) {
  ModelConfig model = small_model();
  const VisionTransformer plain(model, {});
  for (const char* name : {"q_norm.weight", "k_norm.bias", "gate.weight"})
    BOOST_TEST(plain.parameters().find(std::string("blocks.0.attn.") + name) == -1);
  model.qk_norm = model.gate = true;
  const VisionTransformer both(model, {});
  const ParameterList& list = both.parameters();
  const auto check = [&](const std::string& name, const Shape& shape, const Initial& initial, bool decay) {
    const ParameterId id = list.find(name);
    BOOST_REQUIRE_MESSAGE(id >= 0, name);
    BOOST_CHECK(list[id].shape == shape);
    BOOST_CHECK(list[id].initial.kind == initial.kind);
    BOOST_TEST(list[id].initial.value == initial.value);
    BOOST_TEST(list[id].decay == decay);
  };
  for (const std::string block : {"blocks.0.attn.", "blocks.1.attn."}) {
    for (const std::string norm : {"q_norm", "k_norm"}) {
      check(block + norm + ".weight", {3}, Initial::constant(1), false);
      check(block + norm + ".bias", {3}, Initial::constant(0), false);
    }
    check(block + "gate.weight", {6, 6}, Initial::truncated_normal(0.02), true);
    check(block + "gate.bias", {6}, Initial::constant(0), false);
  }
}

// A zero gate closes the attention branch, except for the bias of its output projection.
BOOST_AUTO_TEST_CASE(a_closed_gate) {
  ModelConfig model = small_model();
  model.gate = true;
  for (const char* act : {"none", "silu"}) {
    model.gate_act = act;
    ParameterList list;
    const AttentionLayer layer(list, "attn", 6, 2, make_mechanism("sima", {}), AttentionShape{.queries = 4},
                               {.gate = true, .gate_silu = model.gate_act == "silu"});
    Parameters<double> parameters(list);
    parameters.initialise(1);
    for (double& weight : parameters[list.find("attn.gate.weight")]) weight = 0;
    Tape<double> tape({.parameters = &parameters});
    Tensor<double> x(Shape{1, 4, 6});
    for (Index i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
    for (const double value : layer(tape.constant(std::as_const(x).view())).value()) BOOST_TEST(value == 0.0);
  }
}

// With qk_norm, maps are computed from normalised queries and keys: scaling q and k does not change them.
BOOST_AUTO_TEST_CASE(maps_are_made_from_normalised_queries_and_keys) {
  ParameterList list;
  const AttentionLayer layer(list, "attn", 6, 2, make_mechanism("softmax", {}), AttentionShape{.queries = 4},
                             {.qk_norm = true});
  Parameters<double> parameters(list);
  parameters.initialise(1);
  for (double& weight : parameters[list.find("attn.qkv.weight")]) weight *= 1e4;  // so that eps is negligible
  Tensor<double> x(Shape{1, 4, 6});
  for (Index i = 0; i < x.size(); ++i) x[i] = std::sin(static_cast<double>(i));
  Tape<double> tape({.parameters = &parameters});
  Tensor<double> maps;
  const AttentionVisitor<double> visit = [&](const AttentionSite<double>& site) { maps = attention_maps(site); };
  layer(tape.constant(std::as_const(x).view()), {}, Tokens::all, nullptr, &visit);
  const Tensor<double> before = maps;
  for (double& weight : parameters[list.find("attn.qkv.weight")]) weight *= 10;
  tape.clear();
  layer(tape.constant(std::as_const(x).view()), {}, Tokens::all, nullptr, &visit);
  const Tensor<double>& after = maps;
  for (Index i = 0; i < before.size(); ++i) BOOST_TEST(std::abs(before[i] - after[i]) < 1e-9);
}

// The maps of a batch equal the maps of its images, computed one by one, in the same order.
BOOST_AUTO_TEST_CASE(maps_of_several_images) {
  ParameterList list;
  const AttentionLayer layer(list, "attn", 6, 2, make_mechanism("softmax", {}), AttentionShape{.queries = 4});
  Parameters<double> parameters(list);
  for (Index i = 0; i < parameters.size(); ++i) parameters.data()[i] = std::sin(static_cast<double>(i));
  Tensor<double> x(Shape{3, 4, 6});
  for (Index i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i));
  const auto maps_of = [&](Index first, Index count) {
    Tape<double> tape({.parameters = &parameters});
    Tensor<double> maps;
    const AttentionVisitor<double> visit = [&](const AttentionSite<double>& site) {
      BOOST_TEST(site.layer == "attn");
      maps = attention_maps(site);
    };
    layer(tape.constant(std::as_const(x).view().part(first, count)), {}, Tokens::all, nullptr, &visit);
    return maps;
  };
  const Tensor<double> all = maps_of(0, 3);
  BOOST_TEST_REQUIRE(to_string(all.shape()) == "[3, 2, 4, 4]");
  for (Index image = 0; image < 3; ++image) {
    const Tensor<double> alone = maps_of(image, 1);
    for (Index i = 0; i < 32; ++i) BOOST_TEST(std::abs(all[32 * image + i] - alone[i]) < 1e-13, "image " << image);
  }
  BOOST_TEST(std::abs(all[0] - all[32]) > 1e-6);
}

BOOST_AUTO_TEST_CASE(what_does_not_go_together_is_refused) {
  ModelConfig model = small_model();
  AttentionConfig attention;
  attention.mechanism = {"sima"};
  attention.options["causal"] = {"false", "--set"};
  BOOST_CHECK_NO_THROW(VisionTransformer(model, attention));
  attention.options["causal"] = {"true", "--set"};
  check_refused(model, attention, "[sima] causal is 'true'; expected false, since the mechanism has no causal form");
  attention.mechanism = {"softmax", "sima"};
  check_refused(model, attention, "[sima] causal is 'true'; expected false, since the mechanism has no causal form");
  attention = {};
  attention.mechanism = {"pointwise"};
  attention.options["alpha"] = {"2", "--set"};
  check_refused(model, attention, "[pointwise] alpha is 2; expected 0 to 1");
}

BOOST_AUTO_TEST_SUITE_END()
