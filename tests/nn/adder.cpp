// Adder blocks in a Vision Transformer: tensors, initial values, and scaling of gradients.
#include "heed/nn/vit.h"
#include "heed/train/tasks/classification.h"
#include "heed/train/step.h"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <set>
#include <string>
#include <tuple>

using namespace heed;

namespace {

ModelConfig config(std::vector<std::string> linear) {
  ModelConfig m;
  m.image = 8, m.channels = 1, m.patch = 4, m.dim = 12, m.depth = 2, m.heads = 3, m.hidden = 20, m.classes = 5;
  m.linear = std::move(linear);
  return m;
}

AttentionConfig attention(std::vector<std::string> mechanism) {
  AttentionConfig a;
  a.mechanism = std::move(mechanism);
  return a;
}

std::set<std::string> names(const VisionTransformer& model, const std::string& prefix) {
  std::set<std::string> found;
  for (const ParameterSpec& spec : model.parameters())
    if (spec.name.starts_with(prefix)) found.insert(spec.name.substr(prefix.size()));
  return found;
}

/// Returns the gradients of a step on random images.
Gradients<double> step(const VisionTransformer& model, Parameters<double>& parameters) {
  parameters.initialise(3);
  Tensor<double> images(Shape{6, 1, 8, 8}), targets(Shape{6, 5});
  for (Index i = 0; i < images.size(); ++i) images[i] = RandomStream(4).normal(i);
  std::vector<int> labels;
  for (int i = 0; i < 6; ++i) labels.push_back(i % 5), targets[i * 5 + i % 5] = 1;
  BatchGradient<double> gradient(model, parameters, 6, {.microbatch = 2});
  gradient.run(ClassificationBatch<double>({images.view()}, targets.view(), labels.data()), RandomStream(1));
  return gradient.gradients();
}

double norm(View<const double> values, Index first, Index count) {
  double squares = 0;
  for (Index i = first; i < first + count; ++i) squares += values[i] * values[i];
  return std::sqrt(squares);
}

}  // namespace

BOOST_AUTO_TEST_SUITE(adder_blocks)

BOOST_AUTO_TEST_CASE(each_projection_is_followed_by_its_norm) {
  const VisionTransformer model(config({"adder", "mul"}), attention({"softmax", "adder"}));
  std::set<std::string> adder;
  for (const std::string layer :
       {"norm1", "attn.qkv", "attn.q_ln", "attn.k_ln", "attn.v_ln", "attn.out_ln", "attn.proj", "attn.proj_ln", "norm2",
        "mlp.fc1", "mlp.fc1_ln", "mlp.fc2", "mlp.fc2_ln"})
    adder.insert({layer + ".weight", layer + ".bias"});
  std::set<std::string> mul;
  for (const std::string layer : {"norm1", "attn.qkv", "attn.proj", "norm2", "mlp.fc1", "mlp.fc2"})
    mul.insert({layer + ".weight", layer + ".bias"});
  BOOST_TEST(names(model, "blocks.0.") == adder, boost::test_tools::per_element());
  BOOST_TEST(names(model, "blocks.1.") == mul, boost::test_tools::per_element());
  const ParameterList& list = model.parameters();
  BOOST_TEST(list[list.find("blocks.0.attn.qkv.weight")].shape.elements() == 36 * 12);
  BOOST_TEST(list[list.find("blocks.0.mlp.fc1_ln.weight")].shape.elements() == 20);
}

BOOST_AUTO_TEST_CASE(adder_weights_start_standard_normal) {
  ModelConfig m = config({"adder"});
  m.dim = 60;
  const VisionTransformer model(m, attention({"adder"}));
  Parameters<double> parameters(model.parameters());
  parameters.initialise(1);
  const auto weight = std::as_const(parameters)[model.parameters().find("blocks.1.attn.qkv.weight")];
  const double n = static_cast<double>(weight.size());  // 10,800 samples: their root mean square is within 5 % of 1
  BOOST_TEST(std::abs(norm(weight, 0, weight.size()) / std::sqrt(n) - 1) < 0.05);
  const auto bias = std::as_const(parameters)[model.parameters().find("blocks.1.attn.qkv.bias")];
  BOOST_TEST(norm(bias, 0, bias.size()) == 0);
}

BOOST_AUTO_TEST_CASE(adaptive_scaling_takes_q_k_and_v_apart_and_leaves_the_rest) {
  ModelConfig m = config({"adder", "mul"});
  const VisionTransformer plain_model(m, attention({"adder"}));
  m.weight_scale = "adaptive";
  const VisionTransformer model(m, attention({"adder"}));
  Parameters<double> parameters(model.parameters()), plain_parameters(plain_model.parameters());
  const Gradients<double> scaled = step(model, parameters), plain = step(plain_model, plain_parameters);
  for (ParameterId id = 0; id < model.parameters().size(); ++id) {
    const std::string& name = model.parameters()[id].name;
    const View<const double> a = scaled[id], b = plain[id];
    const bool qkv = name == "blocks.0.attn.qkv.weight";
    const bool other =
        name == "blocks.0.attn.proj.weight" || name == "blocks.0.mlp.fc1.weight" || name == "blocks.0.mlp.fc2.weight";
    const Index parts = qkv ? 3 : 1, size = a.size() / parts;
    for (Index p = 0; p < parts; ++p) {
      const double before = norm(b, p * size, size);
      const double factor = qkv || other ? 0.2 * std::sqrt(static_cast<double>(size)) / before : 1;
      double worst = 0;
      for (Index i = p * size; i < (p + 1) * size; ++i) worst = std::max(worst, std::abs(a[i] - factor * b[i]));
      BOOST_TEST(worst <= 1e-14, name << " is off by " << worst);
    }
  }
}

// The derivatives with respect to inputs and weights are chosen separately.
BOOST_AUTO_TEST_CASE(choices_of_gradients_reach_their_operands) {
  using enum DistanceGradient;
  using Scale = AdderLinearOptions::WeightScale;
  const auto chosen = [](const char* input, const char* weight, const char* scale_name) {
    ModelConfig m;
    m.input_grad = input, m.weight_grad = weight, m.weight_scale = scale_name;
    const AdderLinearOptions options = adder_options(m);
    return std::tuple(options.input_grad, options.weight_grad, options.weight_scale);
  };
  BOOST_TEST((chosen("sign", "hardtanh", "none") == std::tuple(sign, hardtanh, Scale::none)));
  BOOST_TEST((chosen("hardtanh", "sign", "adaptive") == std::tuple(hardtanh, sign, Scale::adaptive)));
  BOOST_TEST((chosen("hardtanh", "full", "none") == std::tuple(hardtanh, full, Scale::none)));
}

BOOST_AUTO_TEST_CASE(unknown_choices_are_refused) {
  ModelConfig m = config({"adder"});
  m.weight_grad = "fulll";
  BOOST_CHECK_EXCEPTION(VisionTransformer(m, attention({"adder"})), Error, [](const Error& e) {
    return std::string(e.what()) == "[model] weight_grad = 'fulll'; did you mean 'full'?";
  });
}

BOOST_AUTO_TEST_SUITE_END()
