// Models inferred from a file's tensors: each key that tensors determine is recovered, and the keys that an error
// suggests fit the file.
#include "heed/config/model_of_tensors.h"

#include "heed/base/split.h"
#include "heed/io/weights.h"
#include "heed/nn/vit.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

struct TensorCase {
  const char* name;
  void (*change)(ModelConfig&);
};

ModelConfig tensor_model() {
  ModelConfig m;
  m.image = 8, m.channels = 1, m.patch = 4, m.dim = 8, m.depth = 2, m.heads = 2, m.hidden = 12, m.classes = 3;
  return m;
}

const TensorCase tensor_cases[] = {
    {"plain", [](ModelConfig&) {}},
    {"sizes",
     [](ModelConfig& m) { m.dim = 12, m.depth = 3, m.heads = 4, m.hidden = 7, m.classes = 5, m.channels = 3; }},
    {"patch",
     [](ModelConfig& m) {
       m.patch = {4, 2}, m.image = {12, 6};
     }},
    {"mean", [](ModelConfig& m) { m.pool = "mean"; }},
    {"fc_norm without class token", [](ModelConfig& m) { m.pool = "mean", m.pool_norm = "after"; }},
    {"fc_norm beside class token",
     [](ModelConfig& m) { m.pool = "mean", m.pool_norm = "after", m.class_token = true; }},
    {"registers", [](ModelConfig& m) { m.registers = 3; }},
    {"registers without positions", [](ModelConfig& m) { m.registers = 3, m.embed_prefix = false; }},
    {"no position of the class token", [](ModelConfig& m) { m.embed_prefix = false; }},
    {"registers without class token", [](ModelConfig& m) { m.registers = 2, m.pool = "mean"; }},
    {"distilled", [](ModelConfig& m) { m.distilled = true; }},
    {"qkv_bias", [](ModelConfig& m) { m.qkv_bias = false; }},
    {"qk_norm", [](ModelConfig& m) { m.qk_norm = true, m.heads = 4; }},
    {"gate", [](ModelConfig& m) { m.gate = true; }},
    {"layer_scale", [](ModelConfig& m) { m.block_scale = 1e-5; }},
    {"pre_norm", [](ModelConfig& m) { m.pre_norm = true, m.norm_eps = 1e-5, m.act = "quick_gelu"; }},
};

std::map<std::string, Shape> shapes_of(const ModelConfig& m) {
  const VisionTransformer model(m, {});
  std::map<std::string, Shape> shapes;
  for (const ParameterSpec& spec : model.parameters()) shapes[spec.name] = spec.shape;
  return shapes;
}

std::string fields_of(ModelConfig m) {
  m.class_token = m.has_class_token();
  Experiment x;
  x.model = m;
  return to_toml(x);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_model_of_tensors)

BOOST_AUTO_TEST_CASE(each_key_is_found_again) {
  for (const TensorCase& c : tensor_cases) BOOST_TEST_CONTEXT(c.name) {
      ModelConfig m = tensor_model();
      c.change(m);
      const ModelConfig found = model_of_tensors("file", shapes_of(m), m.qk_norm ? 0 : m.heads).model;
      BOOST_TEST(fields_of(found) == fields_of(m));
      // With the number of classes, the overrides give the same model.
      std::vector<std::string> sets = sets_of_tensors(found);
      sets.push_back(fmt::format("model.classes={}", m.classes));
      BOOST_TEST(fields_of(load_sets(sets).model) == fields_of(m));
    }
}

BOOST_AUTO_TEST_CASE(what_tensors_leave_open_is_assumed) {
  ModelConfig m = tensor_model();
  m.dim = 128;
  const ModelOfTensors usual = model_of_tensors("file", shapes_of(m), 0);
  BOOST_TEST(usual.model.heads == 2);
  BOOST_TEST(usual.assumed == std::vector<std::string>{"heads = 2 (64 channels per head)"},
             boost::test_tools::per_element());
  BOOST_TEST(model_of_tensors("file", shapes_of(m), 8).model.heads == 8);
  BOOST_TEST(model_of_tensors("file", shapes_of(m), 8).assumed.empty());
  std::map<std::string, Shape> features = shapes_of(m);
  features.erase("head.weight"), features.erase("head.bias");
  const ModelOfTensors of_features = model_of_tensors("file", features, 2);
  BOOST_TEST(!of_features.model.classifier);
  BOOST_TEST(of_features.assumed.size() == 1u);
  BOOST_TEST(usual.model.classifier);
}

// Once the keys named in the error are set, the model that did not fit has the tensors of the file. A file does not
// store heads, eps or activations.
BOOST_AUTO_TEST_CASE(keys_of_an_error_fit_the_file) {
  const TemporaryDirectory directory;
  const std::string path = directory / "file.safetensors";
  for (const TensorCase& c : tensor_cases) BOOST_TEST_CONTEXT(c.name) {
      ModelConfig m = tensor_model(), own = m;
      m.dim = own.dim = 64, m.heads = own.heads = 1;  // one head is inferred per 64 channels
      c.change(m);
      own.classes = m.classes, own.image = m.image;
      if (!m.patch.square()) own.patch = {2, 2};
      if (m.dim == 12) m.dim = 128, m.heads = 2;
      if (m.qk_norm) m.heads = 1;
      const VisionTransformer model(m, {});
      Parameters<float> weights(model.parameters());
      weights.initialise(1);
      SafetensorsWriter writer;
      add_weights(writer, weights);
      writer.write(path);
      const SafetensorsFile file(path);
      BOOST_TEST(fitting_keys(file, m) == "");
      const std::string text = fitting_keys(file, own);
      BOOST_TEST(text.empty() == (std::string(c.name) == "plain"));
      if (text.empty()) continue;
      BOOST_REQUIRE(text.starts_with("; --set "));
      BOOST_REQUIRE(text.ends_with(" fits the file"));
      Experiment before;
      before.model = own;
      write_file(directory / "own.toml", to_toml(before));
      std::vector<std::string> sets;
      for (const std::string& word : split(text, ' '))
        if (word.find('=') != std::string::npos) sets.push_back(word);
      const ModelConfig fitted = load_experiment(directory / "own.toml", sets).model;
      BOOST_TEST((shapes_of(fitted) == shapes_of(m)), text);
    }
}

BOOST_AUTO_TEST_CASE(assumptions_are_in_words) {
  ModelConfig m = tensor_model();
  m.pre_norm = true;
  std::map<std::string, Shape> shapes = shapes_of(m);
  shapes.erase("head.weight"), shapes.erase("head.bias");
  const ModelOfTensors found = model_of_tensors("file", shapes, 2);
  BOOST_TEST(found.assumed == (std::vector<std::string>{"norm_eps = 1e-5 and act = \"quick_gelu\" (as in CLIP)",
                                                        "no classifier, only features"}),
             boost::test_tools::per_element());
  BOOST_TEST(found.model.norm_eps == 1e-5);
  BOOST_TEST(found.model.classes == 1);
}

BOOST_AUTO_TEST_CASE(tensors_of_other_models_are_named) {
  const auto refusal = [](const ModelConfig& m, void (*change)(std::map<std::string, Shape>&)) {
    std::map<std::string, Shape> shapes = shapes_of(m);
    change(shapes);
    return error_of([&] { model_of_tensors("file", shapes, 2); }, "file: ");
  };
  using Shapes = std::map<std::string, Shape>;
  const ModelConfig m = tensor_model();
  ModelConfig distilled = m;
  distilled.distilled = true;
  const std::string missing =
      "expected a Vision Transformer with timm's tensor names, but 'patch_embed.proj.weight' is missing";
  BOOST_TEST(refusal(m, [](Shapes& s) { s.erase("patch_embed.proj.weight"); }) == missing);
  BOOST_TEST(refusal(m, [](Shapes& s) {
               s["vit.embeddings.patch_embeddings.projection.weight"] = s.at("patch_embed.proj.weight");
               s.erase("patch_embed.proj.weight");
             }) == missing + "; for Hugging Face's names, use heed convert hf-vit, hf-deit or hf-dinov2");
  BOOST_TEST(refusal(m, [](Shapes& s) {
               s["patch_embed.proj.weight"] = {8, 16};
             }) == "tensor 'patch_embed.proj.weight' has shape [8, 16]; expected 4 axes");
  BOOST_TEST(refusal(m, [](Shapes& s) {
               s["register_tokens"] = {1, 2, 8};
             }) == "the tensors have DINOv2's own names; `heed convert file OUT` writes timm's");
  BOOST_TEST(refusal(m, [](Shapes& s) { s.erase("pos_embed"); }) ==
             "'pos_embed', which determines the image size, is missing; give a model file");
  BOOST_TEST(refusal(m, [](Shapes& s) {
               s["pos_embed"] = {1, 7, 8};
             }).starts_with("'pos_embed' has 7 rows; expected a square number of patches, with or without 1 more"));
  const std::string expected = "; a model with model.distilled has pool = \"cls\" and no registers";
  BOOST_TEST(refusal(distilled, [](Shapes& s) { s.erase("cls_token"); }) ==
             "has 'dist_token' without 'cls_token'" + expected);
  BOOST_TEST(refusal(distilled, [](Shapes& s) { s["fc_norm.weight"] = {8}; }) ==
             "has 'dist_token' with 'fc_norm.weight'" + expected);
  BOOST_TEST(refusal(distilled, [](Shapes& s) {
               s["reg_token"] = {1, 2, 8};
             }) == "has 'dist_token' with 'reg_token'" + expected);
}

BOOST_AUTO_TEST_SUITE_END()
