#include "wide_cases.h"

#include "heed/attention/plugin.h"
#include "heed/checks/attention_case.h"
#include "heed/ops/activation.h"
#include "heed/ops/adder_linear.h"
#include "heed/ops/conv2d.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/dino.h"
#include "heed/ops/elementary/functions.h"
#include "heed/ops/elementary/matmul.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"
#include "heed/ops/patch_embedding.h"
#include "heed/ops/sequences.h"
#include "heed/ops/softmax.h"
#include "heed/ops/tokens.h"

#include <fmt/format.h>

namespace heed {

namespace {

using F = Var<float>;

void visit_operations(const std::function<void(const CheckCase&)>& visit) {
  const auto add = [&](const char* name, std::vector<CheckInput> inputs, const auto& f) {
    CheckCase c;
    c.name = fmt::format("{}, {}", name, inputs[0].shape);
    c.inputs = std::move(inputs);
    c.in_float = [f](Tape<float>&, const std::vector<F>& v) { return f(v); };
    visit(c);
  };
  using Function = F (*)(F);
  for (const auto& [name, f] :
       std::initializer_list<std::pair<const char*, Function>>{{"gelu", gelu<float>},
                                                               {"silu", silu<float>},
                                                               {"gelu_tanh", gelu_tanh<float>},
                                                               {"quick_gelu", quick_gelu<float>},
                                                               {"exp", exp<float>},
                                                               {"tanh", tanh<float>},
                                                               {"sigmoid", sigmoid<float>},
                                                               {"softmax", softmax<float>},
                                                               {"unit_rows", unit_rows<float>}})
    add(name, {{"x", {100, 203}, -8, 8}}, [f = f](const auto& v) { return f(v[0]); });
  for (const auto& [name, f] :
       std::initializer_list<std::pair<const char*, Function>>{{"log", log<float>}, {"sqrt", sqrt<float>}})
    add(name, {{"x", {100, 203}, 0.01, 8}}, [f = f](const auto& v) { return f(v[0]); });

  const CheckInput x{"x", {2, 50, 136}, -2, 2}, gamma{"gamma", {136}}, beta{"beta", {136}}, weight{"weight", {72, 136}},
      bias{"bias", {72}};
  add("layer_norm", {x, gamma, beta}, [](const auto& v) { return layer_norm(v[0], v[1], v[2]); });
  add("layer_norm_linear", {x, gamma, beta, weight, bias},
      [](const auto& v) { return layer_norm_linear(v[0], v[1], v[2], v[3], v[4]); });
  add("linear", {x, weight, bias}, [](const auto& v) { return linear(v[0], v[1], v[2]); });
  add("gelu_linear", {x, weight, bias}, [](const auto& v) { return gelu_linear(v[0], v[1], v[2]); });
  add("adder_linear", {x, weight, bias}, [](const auto& v) { return adder_linear(v[0], v[1], v[2]); });
  add("matmul", {x, {"y", {2, 136, 50}}}, [](const auto& v) { return matmul(v[0], v[1]); });
  for (const int axis : {0, 1, 2})
    add(fmt::format("sum over axis {}", axis).c_str(), {x}, [=](const auto& v) { return sum(v[0], {axis}); });
  add("mean_tokens", {x}, [](const auto& v) { return mean_tokens(v[0]); });
  add("l1_normalize_tokens", {x}, [](const auto& v) { return l1_normalize_tokens(v[0], 1e-6); });

  // A scalar loss often hides a difference in the last bit, so there are several cases.
  for (const Index classes : {10, 11, 12, 13, 14, 15}) {
    add("label_cross_entropy", {{"logits", {1, classes}, -8, 8}}, [](const auto& v) {
      static constexpr int label = 3;
      return label_cross_entropy(v[0], &label, 1);
    });
    add("cross_entropy", {{"logits", {1, classes}, -8, 8}}, [=](const auto& v) {
      float* const targets = v[0].tape().memory(classes);
      std::fill_n(targets, classes, 1 / static_cast<float>(classes));
      return cross_entropy(v[0], View<const float>(targets, Shape{1, classes}), 0.1, 1);
    });
  }

  const CheckInput grid{"x", {2, 196, 24}, -2, 2};
  for (const Index stride : {1, 2}) {
    add(fmt::format("conv2d, stride {}", stride).c_str(), {grid, {"weight", {20, 24, 3, 3}}, {"bias", {20}}},
        [=](const auto& v) {
          return conv2d(v[0], v[1], v[2], {14, 14, stride, 1});
        });
    add(fmt::format("depthwise_conv2d, stride {}", stride).c_str(), {grid, {"weight", {24, 1, 3, 3}}, {"bias", {24}}},
        [=](const auto& v) {
          return depthwise_conv2d(v[0], v[1], v[2], {14, 14, stride, 1});
        });
  }
  add("patch_embedding", {{"x", {2, 3, 32, 32}}, {"weight", {40, 3, 4, 4}}, {"bias", {40}}},
      [](const auto& v) { return patch_embedding(v[0], v[1], v[2]); });
}

}  // namespace

void for_wide_cases(const std::function<void(const CheckCase&)>& visit) {
  visit_operations(visit);
  const AttentionCaseShape shapes[] = {{"196 tokens", 2, 2, 196, 196, 80, 14, 14, 0},
                                       {"196 tokens, one head", 2, 1, 196, 196, 40, 14, 14, 0},
                                       {"197 tokens", 2, 2, 197, 197, 80, 14, 14, 1}};
  for (const MechanismEntry& entry : mechanisms())
    for (const OptionValues& options : entry.variants()) {
      if (plugin_of(entry.name)) continue;
      std::string label = entry.name;
      for (const auto& [key, value] : options) label += fmt::format(", {}={}", key, value);
      const std::unique_ptr<Mechanism> mechanism = make_mechanism(entry.name, options);
      for (const AttentionCaseShape& shape : shapes)
        if (const auto accepted = attention_case(label, *mechanism, shape)) visit(*accepted);
    }
}

}  // namespace heed
