// Files with Hugging Face's names: renaming, joining, and errors.
#include "heed/io/hugging_face.h"

#include "heed/config/model_of_tensors.h"
#include "tests/io/hugging_face.h"
#include "support/training.h"

#include <map>
#include <utility>

using namespace heed;
using namespace heed::test;

namespace {

bool equal(const Parameters<float>& a, const Parameters<float>& b) {
  return a.size() == b.size() && std::equal(a.data(), a.data() + a.size(), b.data());
}

}  // namespace

BOOST_AUTO_TEST_SUITE(hugging_face)

BOOST_AUTO_TEST_CASE(files_of_vit_deit_and_dinov2_become_timms) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  for (const bool dinov2 : {false, true})
    for (const bool distilled : {false, true}) {
      ModelConfig m = published_vit();
      m.distilled = distilled && !dinov2;
      if (dinov2) m.block_scale = 1e-5;
      m.qkv_bias = !distilled;
      const Parameters<float> ours = drawn(m);
      TheirFile theirs(ours, dinov2);
      theirs.add("vit.pooler.dense.weight", {2, 2}, 1);
      theirs.add("vit.embeddings.mask_token", {1, 1, 64}, 1);
      theirs.write(in);
      const std::vector<std::string> left_out = convert_hugging_face(in, out);
      BOOST_TEST(left_out == (std::vector<std::string>{"vit.embeddings.mask_token", "vit.pooler.dense.weight"}),
                 boost::test_tools::per_element());
      Parameters<float> read(ours.list());
      load_weights(SafetensorsFile(out), read);
      BOOST_TEST(equal(read, ours));
      ModelConfig found = model_of_tensors(SafetensorsFile(out)).model;
      found.class_token.reset();
      BOOST_TEST((found == m), "distilled = " << distilled << ", dinov2 = " << dinov2);
    }
}

BOOST_AUTO_TEST_CASE(the_models_class_may_be_part_of_the_names) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  for (const char* prefix : {"dinov2.", "dinov2_with_registers.", "vit.", "deit.", ""}) {
    const bool dinov2 = std::string(prefix).starts_with("dinov2");
    ModelConfig m = published_vit();
    if (dinov2) m.block_scale = 1e-5;
    const Parameters<float> ours = drawn(m);
    TheirFile theirs(ours, dinov2);
    theirs.rename(dinov2 ? "dinov2." : "vit.", prefix);
    theirs.write(in);
    BOOST_TEST(convert_hugging_face(in, out).empty(), prefix);
    Parameters<float> read(ours.list());
    load_weights(SafetensorsFile(out), read);
    BOOST_TEST(equal(read, ours), prefix);
  }
}

// In these files, registers have no positions, and the class token has one.
BOOST_AUTO_TEST_CASE(registers_stand_behind_a_class_token_with_a_position) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  ModelConfig m = published_vit();
  m.registers = 2, m.embed_prefix = false;
  const Parameters<float> ours = drawn(m);
  TheirFile theirs(ours, true);
  Tensor<float>& positions = theirs["dinov2.embeddings.position_embeddings"];
  Tensor<float> more(Shape{1, 5, 64});
  std::fill_n(more.begin(), 64, 0.25F);
  std::copy(positions.begin(), positions.end(), more.begin() + 64);
  positions = more;
  for (float& x : theirs["dinov2.embeddings.cls_token"]) x -= 0.25F;
  theirs.add("classifier.weight", {3, 128}, 1);  // reads the class token and the mean of the patches
  theirs.write(in);
  const std::vector<std::string> left_out = convert_hugging_face(in, out);
  BOOST_TEST(left_out == (std::vector<std::string>{"classifier.bias", "classifier.weight"}),
             boost::test_tools::per_element());
  Parameters<float> read(ours.list());
  load_weights(SafetensorsFile(out), read, {.new_head = true});
  for (const ParameterSpec& spec : ours.list()) {
    const ParameterId id = ours.list().find(spec.name);
    const View<const float> a = ours[id], b = std::as_const(read)[id];
    // Values of the class token are rounded twice: when 0.25 is subtracted and when it is added.
    for (Index i = 0; i < a.size() && !spec.name.starts_with("head."); ++i)
      BOOST_REQUIRE_SMALL(static_cast<double>(a[i] - b[i]), 1e-7);
  }
}

// If one tensor has doubles, it keeps all digits, and the values of the other tensors do not change.
BOOST_AUTO_TEST_CASE(doubles_stay_doubles) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  const Parameters<float> ours = drawn(published_vit());
  TheirFile(ours, false).write(in);
  const std::string precise = "vit.encoder.layer.1.intermediate.dense.bias";
  Tensor<double> thirds(Shape{10});
  for (Index i = 0; i < 10; ++i) thirds[i] = static_cast<double>(i + 1) / 3;
  std::map<std::string, Tensor<float>> others;
  SafetensorsWriter writer;
  {
    const SafetensorsFile file(in);
    for (const std::string& name : file.names())
      if (name != precise) others[name] = file.read<float>(name);
  }
  for (const auto& [name, tensor] : others) writer.add(name, tensor.view());
  writer.add(precise, std::as_const(thirds).view());
  writer.write(in);
  convert_hugging_face(in, out);
  const SafetensorsFile file(out);
  const Tensor<double> found = file.read<double>("blocks.1.mlp.fc1.bias");
  BOOST_TEST(std::equal(found.begin(), found.end(), thirds.begin(), thirds.end()));
  Parameters<float> read(ours.list());
  load_weights(file, read);
  for (ParameterId id = 0; id < ours.list().size(); ++id) {
    const std::string& name = ours.list()[id].name;
    const View<const float> a = ours[id], b = std::as_const(read)[id];
    if (name != "blocks.1.mlp.fc1.bias") BOOST_TEST(std::equal(a.begin(), a.end(), b.begin(), b.end()), name);
  }
}

BOOST_AUTO_TEST_CASE(names_of_transformers_5) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  const Parameters<float> ours = drawn(published_vit());
  TheirFile theirs(ours, false);
  for (const auto& [what, by] : {std::pair("encoder.layer.", "layers."),
                                 {"attention.attention.query", "attention.q_proj"},
                                 {"attention.attention.key", "attention.k_proj"},
                                 {"attention.attention.value", "attention.v_proj"},
                                 {"attention.output.dense", "attention.o_proj"},
                                 {"intermediate.dense", "mlp.fc1"},
                                 {"output.dense", "mlp.fc2"}})
    theirs.rename(what, by);
  theirs.write(in);
  convert_hugging_face(in, out);
  Parameters<float> read(ours.list());
  load_weights(SafetensorsFile(out), read);
  BOOST_TEST(equal(read, ours));
}

// DeiT with one classifier, which reads the class token: the distillation token only takes part in attention.
BOOST_AUTO_TEST_CASE(a_distillation_token_without_a_classifier_is_a_register) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  ModelConfig m = published_vit();
  m.registers = 1;
  const Parameters<float> ours = drawn(m);
  TheirFile theirs(ours, false);
  theirs.rename("register_tokens", "distillation_token");
  theirs.write(in);
  convert_hugging_face(in, out);
  Parameters<float> read(ours.list());
  load_weights(SafetensorsFile(out), read);
  BOOST_TEST(equal(read, ours));
  BOOST_TEST(model_of_tensors(SafetensorsFile(out)).model.registers == 1);
}

BOOST_AUTO_TEST_CASE(heads_are_given_where_64_channels_do_not_fit) {
  const TemporaryDirectory directory;
  const std::string file = directory / "w.safetensors";
  ModelConfig m = published_vit();
  m.dim = 24, m.heads = 3;
  const Parameters<float> ours = drawn(m);
  SafetensorsWriter writer;
  for (ParameterId id = 0; id < ours.list().size(); ++id) writer.add(ours.list()[id].name, ours[id]);
  writer.write(file);
  BOOST_TEST(model_of_tensors(SafetensorsFile(file), 3).model.heads == 3);
  BOOST_TEST(model_of_tensors(SafetensorsFile(file), 3).assumed.empty());
  BOOST_CHECK_EXCEPTION(model_of_tensors(SafetensorsFile(file)), Error, [&](const Error& error) {
    return std::string(error.what()).find("64 channels per head do not divide the width of 24") != std::string::npos;
  });
  BOOST_TEST(heads_given({"model.dim=3", "model.heads=4", "model.heads=6"}) == 6);
  BOOST_TEST(heads_given({"model.dim=3"}) == 0);
}

BOOST_AUTO_TEST_CASE(other_tensors_are_refused) {
  const TemporaryDirectory directory;
  const std::string in = directory / "in.safetensors", out = directory / "out.safetensors";
  const Parameters<float> ours = drawn(published_vit());
  const auto refusal = [&](const std::string& name) {
    TheirFile theirs(ours, false);
    theirs.add(name, {2, 2}, 1);
    theirs.write(in);
    try {
      convert_hugging_face(in, out);
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  for (const char* name : {"vit.encoder.layer.0.mlp.weights_in.weight", "vit.encoder.layer.0", "bert.embeddings.word"})
    BOOST_TEST(refusal(name) == in + ": tensor '" + name + "' is not one of Hugging Face's ViT, DeiT or DINOv2");
}

BOOST_AUTO_TEST_SUITE_END()
