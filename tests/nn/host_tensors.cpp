// Tensors of the host families: shapes, initial values, weight decay, and the sum of the mechanisms' penalties.
#include "heed/attention/capabilities/penalty.h"
#include "heed/nn/dino.h"
#include "heed/nn/families.h"
#include "heed/nn/sequence.h"
#include "heed/nn/vit.h"
#include "support/families.h"

#include <boost/test/unit_test.hpp>

#include <cmath>

using namespace heed;
using namespace heed::test;

namespace {

/// Returns a small model of the family with softmax in every block.
std::unique_ptr<Model> softmax_model(const std::string& family) {
  Experiment x = small_experiment(family);
  x.attention = {};
  x.model.layer_scale = 0.25;
  return make_model(x);
}

void check_tensor(const Model& model, const std::string& name, const Shape& shape, const Initial& initial, bool decay) {
  const ParameterList& list = model.parameters();
  const ParameterId id = list.find(name);
  BOOST_REQUIRE_MESSAGE(id >= 0, name);
  BOOST_TEST(to_string(list[id].shape) == to_string(shape), name);
  BOOST_TEST((list[id].initial == initial && list[id].trainable), name);
  BOOST_TEST(list[id].decay == decay, name);
}

/// Returns U(+-1 / sqrt(inputs)).
Initial window_values(double inputs) { return Initial::uniform(1 / std::sqrt(inputs)); }

/// A layer with a mechanism: the prefix of its tensors, and its number of heads.
struct PenaltyLayer {
  const char* name;
  Index heads;
};

/// Checks that the model's penalty is the sum of those of its layers, each computed from the layer's tensors.
void check_penalty(const Model& model, const AttentionConfig& attention_config,
                   const std::vector<PenaltyLayer>& layers) {
  OptionValues options;
  for (const auto& [name, value] : attention_config.options) options[name] = value.text;
  const std::unique_ptr<Mechanism> mechanism = make_mechanism("aft", options);
  Parameters<double> parameters(model.parameters());
  for (Index i = 0; i < parameters.size(); ++i) parameters.data()[i] = RandomStream(3).normal(i);
  double expected = 0;
  for (const PenaltyLayer& layer : layers) {
    const AttentionShape shape{.heads = layer.heads, .queries = 9, .keys = 9, .grid_height = 3, .grid_width = 3};
    std::vector<View<const double>> own;
    for (const ParameterSpec& spec : mechanism->parameters(shape)) {
      const ParameterId id = parameters.list().find(fmt::format("{}.{}", layer.name, spec.name));
      BOOST_REQUIRE_MESSAGE(id >= 0, layer.name << "." << spec.name);
      own.push_back(std::as_const(parameters)[id]);
    }
    double term = 0;
    mechanism->penalty_term()->penalty(AttentionPenalty<double>{shape, own, 1.0, {}, &term});
    expected += term;
  }
  Tape<double> tape({.parameters = &parameters});
  const Var<double> penalty = model.penalty(tape);
  BOOST_REQUIRE(static_cast<bool>(penalty));
  BOOST_TEST(std::abs(*penalty.data() - expected) < 1e-12 * (1 + std::abs(expected)));
}

}  // namespace

BOOST_AUTO_TEST_SUITE(nn_host_tensors)

// A depth-wise window has K x K inputs.
BOOST_AUTO_TEST_CASE(tensors_of_xcit) {
  const auto model = softmax_model("xcit");
  const Initial zero = Initial::constant(0), one = Initial::constant(1), small = Initial::truncated_normal(0.02);
  check_tensor(*model, "cls_token", {1, 1, 6}, small, false);
  check_tensor(*model, "patch_embed.proj.0.0.weight", {3, 2, 3, 3}, window_values(18), true);
  check_tensor(*model, "patch_embed.proj.2.0.weight", {6, 3, 3, 3}, window_values(27), true);
  check_tensor(*model, "patch_embed.proj.2.1.weight", {6}, one, false);
  check_tensor(*model, "patch_embed.proj.2.1.bias", {6}, zero, false);
  check_tensor(*model, "pos_embed.token_projection.weight", {6, 64, 1, 1}, window_values(64), true);
  check_tensor(*model, "pos_embed.token_projection.bias", {6}, window_values(64), false);
  for (const std::string layer : {"blocks.1.local_mp.conv1", "blocks.1.local_mp.conv2"}) {
    check_tensor(*model, layer + ".weight", {6, 1, 3, 3}, window_values(9), true);
    check_tensor(*model, layer + ".bias", {6}, window_values(9), false);
  }
  for (const char* gamma : {"blocks.0.gamma1", "blocks.0.gamma2", "blocks.1.gamma3", "cls_attn_blocks.0.gamma1",
                            "cls_attn_blocks.0.gamma2"})
    check_tensor(*model, gamma, {6}, Initial::constant(0.25), false);
  check_tensor(*model, "cls_attn_blocks.0.attn.q.weight", {6, 6}, small, true);
  check_tensor(*model, "cls_attn_blocks.0.mlp.fc1.weight", {5, 6}, small, true);
  check_tensor(*model, "head.bias", {3}, zero, false);
}

BOOST_AUTO_TEST_CASE(tensors_of_cvt) {
  const auto model = softmax_model("cvt");
  const Initial small = Initial::truncated_normal(0.02);
  check_tensor(*model, "stage0.patch_embed.proj.weight", {4, 2, 3, 3}, window_values(18), true);
  check_tensor(*model, "stage1.patch_embed.proj.weight", {6, 4, 3, 3}, window_values(36), true);
  check_tensor(*model, "stage1.patch_embed.proj.bias", {6}, window_values(36), false);
  check_tensor(*model, "stage1.patch_embed.norm.weight", {6}, Initial::constant(1), false);
  check_tensor(*model, "stage1.cls_token", {1, 1, 6}, small, false);
  check_tensor(*model, "stage0.blocks.0.attn.conv_proj_k.conv.weight", {4, 1, 3, 3}, window_values(9), true);
  check_tensor(*model, "stage1.blocks.1.attn.proj_v.weight", {6, 6}, small, true);
  check_tensor(*model, "stage1.blocks.1.mlp.fc2.weight", {6, 7}, small, true);
  for (const char* none :
       {"stage0.cls_token", "stage0.blocks.0.attn.conv_proj_q.conv.bias", "stage0.blocks.1.norm1.bias"})
    BOOST_TEST(model->parameters().find(none) == -1, none);
}

// Images of 12 x 12 pixels become grids of 6 x 6 and 3 x 3, the second with a class token.
BOOST_AUTO_TEST_CASE(tensors_of_the_pyramid) {
  const auto model = softmax_model("soft");
  const Initial small = Initial::truncated_normal(0.02);
  check_tensor(*model, "patch_embed1.proj.0.weight", {3, 2, 3, 3}, window_values(18), true);
  check_tensor(*model, "patch_embed1.proj.3.bias", {3}, window_values(27), false);
  check_tensor(*model, "patch_embed1.proj.6.weight", {4, 3, 3, 3}, window_values(27), true);
  check_tensor(*model, "patch_embed2.proj.0.weight", {6, 4, 3, 3}, window_values(36), true);
  check_tensor(*model, "pos_embed1", {1, 36, 4}, small, false);
  check_tensor(*model, "pos_embed2", {1, 10, 6}, small, false);
  check_tensor(*model, "cls_token", {1, 1, 6}, small, false);
  const ParameterList& list = model->parameters();
  const auto rows = [&](const char* name) {
    const PositionRows& of = list[list.find(name)].positions;
    return std::vector<Index>{of.front, of.height, of.width};
  };
  BOOST_TEST(rows("pos_embed1") == (std::vector<Index>{0, 6, 6}), boost::test_tools::per_element());
  BOOST_TEST(rows("pos_embed2") == (std::vector<Index>{1, 3, 3}), boost::test_tools::per_element());
}

// Patches of 4 x 2 with three channels have 24 inputs. Embeddings of tokens do not decay, though they are matrices.
BOOST_AUTO_TEST_CASE(tensors_of_patches_and_tokens) {
  const Initial small = Initial::truncated_normal(0.02), zero = Initial::constant(0);
  ModelConfig m;
  m.image = Sides(8, 6), m.channels = 3, m.patch = Sides(4, 2), m.dim = 6, m.depth = 1, m.heads = 2, m.hidden = 5;
  m.classes = 3;
  const VisionTransformer vit(m, {});
  check_tensor(vit, "patch_embed.proj.weight", {6, 3, 4, 2}, window_values(24), true);
  check_tensor(vit, "patch_embed.proj.bias", {6}, window_values(24), false);
  check_tensor(vit, "cls_token", {1, 1, 6}, small, false);
  check_tensor(vit, "pos_embed", {1, 7, 6}, small, false);
  check_tensor(vit, "blocks.0.attn.qkv.weight", {18, 6}, small, true);
  check_tensor(vit, "blocks.0.attn.qkv.bias", {18}, zero, false);
  check_tensor(vit, "head.weight", {3, 6}, small, true);
  m = {};
  m.family = "sequence", m.task = "lm", m.vocab = 7, m.context = 9, m.dim = 6, m.depth = 1, m.heads = 2, m.hidden = 5;
  m.start = true;
  const SequenceModel lm(m, {});
  check_tensor(lm, "tok_embed.weight", {7, 6}, small, false);
  check_tensor(lm, "start_token", {1, 1, 6}, small, false);
  check_tensor(lm, "pos_embed", {1, 9, 6}, small, false);
  check_tensor(lm, "head.weight", {7, 6}, small, true);
  check_tensor(lm, "head.bias", {7}, zero, false);
  m.task = "pair", m.start = false, m.classes = 3, m.head = "mlp";
  const SequenceModel pair(m, {});
  check_tensor(pair, "cls_token", {1, 1, 6}, small, false);
  check_tensor(pair, "pos_embed", {1, 10, 6}, small, false);
  check_tensor(pair, "head.fc1.weight", {5, 24}, small, true);
  check_tensor(pair, "head.fc2.weight", {3, 5}, small, true);
  m.pair = "concat";
  check_tensor(SequenceModel(m, {}), "head.fc1.weight", {5, 12}, small, true);
}

// Running statistics start as those of N(0, 1); only variances must not be negative.
BOOST_AUTO_TEST_CASE(running_statistics) {
  int norms = 0;
  for (const char* family : {"xcit", "cvt", "soft"}) {
    const auto model = softmax_model(family);
    for (const ParameterSpec& spec : model->parameters()) {
      const bool mean = spec.name.ends_with(".running_mean"), variance = spec.name.ends_with(".running_var");
      norms += mean;
      BOOST_TEST(spec.running == (mean || variance), spec.name);
      BOOST_TEST(spec.trainable == !spec.running, spec.name);
      BOOST_TEST(spec.nonnegative == variance, spec.name);
      if (spec.running) BOOST_TEST((spec.initial == Initial::constant(variance ? 1 : 0)), spec.name);
    }
  }
  // XCiT has norms in its stem and its blocks, CvT for q, k and v of its three blocks, the pyramid in its
  // patch embeddings.
  BOOST_TEST(norms == (2 + 2) + 3 * 3 + (3 + 1));
}

// A backbone lacks the classifier's two tensors, and its logits are the features of the whole model.
BOOST_AUTO_TEST_CASE(backbones_give_features) {
  for (const char* family : {"xcit", "cvt", "soft"}) BOOST_TEST_CONTEXT(family) {
      const Experiment x = small_experiment(family);
      const auto whole = make_model(x), backbone = make_backbone(x);
      BOOST_TEST(whole->parameters().size() == backbone->parameters().size() + 2);
      BOOST_TEST(backbone->parameters().find("head.weight") == -1);
      BOOST_TEST(to_string(whole->outputs()) == "[3]");
      BOOST_TEST(to_string(backbone->outputs()) == "[6]");
      const Tensor<double> images = SmallTraining(x, 2).images;
      const ModelInput<double> two{.images = images.view()};
      Parameters<double> parameters(whole->parameters()), own(backbone->parameters());
      parameters.initialise(3), own.initialise(3);
      Tape<double> tape({.parameters = &parameters}), other({.parameters = &own});
      Var<double> features;
      whole->features(tape, two, std::span(&features, 1));
      const Var<double> logits = backbone->logits(other, two);
      BOOST_TEST_REQUIRE(to_string(logits.shape()) == "[2, 6]");
      for (Index i = 0; i < 12; ++i) BOOST_TEST(std::abs(logits.data()[i] - features.data()[i]) < 1e-12);
    }
}

BOOST_AUTO_TEST_CASE(penalties_of_all_blocks_are_added) {
  AttentionConfig entropy;
  entropy.mechanism = {"aft"};
  for (const auto& [name, text] : OptionValues{{"variant", "conv"}, {"sparsity", "entropy"}, {"coef", "0.5"}})
    entropy.options[name] = {text, name};
  const auto small = [&](const std::string& family, const std::vector<std::string>& sets) {
    Experiment x = small_experiment(family, sets);
    x.attention = entropy;
    return x;
  };
  check_penalty(*make_model(small("xcit", {})), entropy, {{"blocks.0.attn", 2}, {"blocks.1.attn", 2}});
  check_penalty(*make_model(small("cvt", {"model.pool=mean", "model.kv_stride=1"})), entropy,
                {{"stage0.blocks.0.attn", 2}, {"stage1.blocks.0.attn", 3}, {"stage1.blocks.1.attn", 3}});
  check_penalty(*make_model(small("soft", {"model.pool=mean"})), entropy,
                {{"block1.0.attn", 2}, {"block2.0.attn", 3}, {"block2.1.attn", 3}});
  Experiment dino;
  ModelConfig& m = dino.model;
  m.image = 6, m.channels = 1, m.patch = 2, m.dim = 4, m.depth = 2, m.heads = 2, m.hidden = 4, m.classes = 3;
  m.pool = "mean";
  dino.attention = entropy;
  dino.dino.local_crops = 0, dino.dino.out_dim = 5, dino.dino.hidden = 3, dino.dino.bottleneck = 2;
  check_penalty(DinoModel(dino), entropy, {{"blocks.0.attn", 2}, {"blocks.1.attn", 2}});
  entropy.options["dims"] = {"1", "dims"};
  ModelConfig sequences;
  sequences.family = "sequence", sequences.task = "classify", sequences.vocab = 7, sequences.context = 9;
  sequences.dim = 6, sequences.depth = 2, sequences.heads = 3, sequences.hidden = 5, sequences.classes = 3;
  sequences.pool = "mean";
  check_penalty(SequenceModel(sequences, entropy), entropy, {{"blocks.0.attn", 3}, {"blocks.1.attn", 3}});
}

BOOST_AUTO_TEST_SUITE_END()
