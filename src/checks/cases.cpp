// Every operation and mechanism, in shapes with different sizes along most axes, to detect swapped indices.
#include "cases.h"

#include "heed/attention/mechanism.h"
#include "heed/checks/attention_case.h"
#include "heed/ops/activation.h"
#include "heed/ops/attention_capabilities.h"
#include "heed/ops/batch_norm.h"
#include "heed/ops/conv2d.h"
#include "heed/ops/cross_entropy.h"
#include "heed/ops/dino.h"
#include "heed/ops/dropout.h"
#include "heed/ops/head_norm.h"
#include "heed/ops/layer_norm.h"
#include "heed/ops/linear.h"
#include "heed/ops/patch_embedding.h"
#include "heed/ops/scale_channels.h"
#include "heed/ops/softmax.h"
#include "heed/ops/tokens.h"

#include <deque>

namespace heed {

namespace {

void add_activations(CheckCases& cases) {
  const CheckInput x{"x", {2, 3, 5}}, kinked{"x", {2, 3, 5}, -1, 1, 0.01};
  cases.add("gelu", {{"x", {2, 3, 5}, -4, 4}}, [](auto&, const auto& v) { return gelu(v[0]); });
  cases.add("relu", {kinked}, [](auto&, const auto& v) { return relu(v[0]); });
  cases.add("silu", {{"x", {2, 3, 5}, -6, 6}}, [](auto&, const auto& v) { return silu(v[0]); });
  cases.add("gelu_tanh", {{"x", {2, 3, 5}, -4, 4}}, [](auto&, const auto& v) { return gelu_tanh(v[0]); });
  cases.add("quick_gelu", {{"x", {2, 3, 5}, -4, 4}}, [](auto&, const auto& v) { return quick_gelu(v[0]); });
  cases.add("scale_channels", {x, {"gamma", {5}}, {"residual", {2, 3, 5}}},
            [](auto&, const auto& v) { return scale_channels(v[0], v[1], v[2]); });
  cases.add("scale_channels, no residual", {x, {"gamma", {5}}},
            [](auto&, const auto& v) { return scale_channels(v[0], v[1]); });
  cases.add("softmax", {{"x", {2, 3, 5}, -3, 3}}, [](auto&, const auto& v) { return softmax(v[0]); });
  cases.add("dropout", {x}, [](auto&, const auto& v) { return dropout(v[0], 0.4, 1); });
  cases.add("stochastic_depth", {{"x", {7, 3, 2}}},
            [](auto&, const auto& v) { return stochastic_depth(v[0], 0.4, 1); });
}

void add_products(CheckCases& cases) {
  const CheckInput x{"x", {2, 3, 5}}, weight{"weight", {7, 5}}, bias{"bias", {7}};
  cases.add("linear", {x, weight, bias}, [](auto&, const auto& v) { return linear(v[0], v[1], v[2]); });
  cases.add("linear, residual", {x, weight, bias, {"residual", {2, 3, 7}}},
            [](auto&, const auto& v) { return linear(v[0], v[1], v[2], v[3]); });
  cases.add("linear, no bias", {x, weight}, [](auto&, const auto& v) { return linear(v[0], v[1]); });
  cases.add("linear, x twice", {{"x", {3, 5}}, {"weight", {5, 5}}},
            [](auto&, const auto& v) { return linear(linear(v[0], v[1]), v[1]); });
  cases.back().unstated.backward.add = 25;  // sum of the weight's two gradients
  cases.add("patch_embedding", {{"x", {2, 3, 4, 6}}, {"weight", {5, 3, 2, 2}}, {"bias", {5}}},
            [](auto&, const auto& v) { return patch_embedding(v[0], v[1], v[2]); });
  cases.add("patch_embedding, wide patches, no bias", {{"x", {2, 3, 4, 6}}, {"weight", {5, 3, 2, 3}}},
            [](auto&, const auto& v) { return patch_embedding(v[0], v[1], {}); });
}

void add_convolutions(CheckCases& cases) {
  struct Geometry {
    Index kernel;
    ConvGrid grid;
  };
  // With and without padding; strides with unused positions; a grid smaller than a window.
  for (const auto& [kernel, grid] : {Geometry{3, {6, 5}}, Geometry{3, {5, 7, 1, 1}}, Geometry{3, {7, 6, 2, 1}},
                                     Geometry{2, {4, 6, 2, 0}}, Geometry{5, {4, 3, 1, 2}}, Geometry{7, {9, 8, 4, 2}}}) {
    const std::string label = fmt::format(", kernel {}, stride {}, padding {}", kernel, grid.stride, grid.padding);
    const CheckInput dense{"x", {2, grid.height * grid.width, 3}}, wide{"x", {2, grid.height * grid.width, 19}};
    cases.add("conv2d" + label, {dense, {"weight", {4, 3, kernel, kernel}}, {"bias", {4}}},
              [grid = grid](auto&, const auto& v) { return conv2d(v[0], v[1], v[2], grid); });
    cases.add("depthwise_conv2d" + label, {wide, {"weight", {19, 1, kernel, kernel}}, {"bias", {19}}},
              [grid = grid](auto&, const auto& v) { return depthwise_conv2d(v[0], v[1], v[2], grid); });
  }
  const ConvGrid grid{5, 4, 2, 1};
  cases.add("conv2d, no bias", {{"x", {2, 20, 3}}, {"weight", {4, 3, 3, 3}}},
            [grid](auto&, const auto& v) { return conv2d(v[0], v[1], {}, grid); });
  cases.add("depthwise_conv2d, no bias", {{"x", {2, 20, 3}}, {"weight", {3, 1, 3, 3}}},
            [grid](auto&, const auto& v) { return depthwise_conv2d(v[0], v[1], {}, grid); });
  cases.add("pixel_rows", {{"images", {2, 3, 4, 5}}}, [](auto&, const auto& v) { return pixel_rows(v[0]); });
}

void add_linear_of(CheckCases& cases) {
  const auto list = [](std::vector<CheckInput> parameters) {
    parameters.insert(parameters.begin(), {"x", {2, 3, 5}, -2, 2, 0.01});
    parameters.insert(parameters.end(), {{"weight", {7, 5}}, {"bias", {7}}, {"residual", {2, 3, 7}}});
    return parameters;
  };
  cases.add("layer_norm_linear", list({{"gamma", {5}}, {"beta", {5}}}),
            [](auto&, const auto& v) { return layer_norm_linear(v[0], v[1], v[2], v[3], v[4], v[5]); });
  cases.add("gelu_linear", list({}), [](auto&, const auto& v) { return gelu_linear(v[0], v[1], v[2], v[3]); });
  cases.add("silu_linear", list({}), [](auto&, const auto& v) { return silu_linear(v[0], v[1], v[2], v[3]); });
  cases.add("relu_linear", list({}), [](auto&, const auto& v) { return relu_linear(v[0], v[1], v[2], v[3]); });
  cases.add("gelu_tanh_linear", list({}),
            [](auto&, const auto& v) { return gelu_tanh_linear(v[0], v[1], v[2], v[3]); });
  cases.add("quick_gelu_linear", list({}),
            [](auto&, const auto& v) { return quick_gelu_linear(v[0], v[1], v[2], v[3]); });
}

void add_norms(CheckCases& cases) {
  cases.add("layer_norm", {{"x", {2, 3, 5}}, {"gamma", {5}}, {"beta", {5}}},
            [](auto&, const auto& v) { return layer_norm(v[0], v[1], v[2]); });
  const std::vector<CheckInput> parameters{{"q_gamma", {4}}, {"q_beta", {4}}, {"k_gamma", {6}}, {"k_beta", {6}}};
  for (const AttentionLayout& layout : {AttentionLayout{3, 4, 6, 7}, AttentionLayout{3, 4, 6, 7, 1}}) {
    std::vector<CheckInput> list{{"qkv", {2, 5, layout.total()}}};
    list.insert(list.end(), parameters.begin(), parameters.end());
    cases.add(fmt::format("head_norm, {} and {} heads", layout.heads, layout.key_heads), list,
              [=](auto&, const auto& v) {
                return head_norm(v[0], layout, {v[1], v[2]}, {v[3], v[4]});
              });
  }
  const auto norm = [](Index group) {
    return [=](auto& tape, const auto& v) {
      const Shape channels{3};
      return batch_norm(v[0], v[1], v[2], filled(tape, channels, [](Index i) { return 0.1 * static_cast<double>(i); }),
                        filled(tape, channels, [](Index i) { return 0.5 + static_cast<double>(i); }), {.group = group});
    };
  };
  const std::vector<CheckInput> list{{"x", {6, 5, 3}}, {"gamma", {3}}, {"beta", {3}}};
  cases.add("batch_norm, training", list, norm(0));
  cases.add("batch_norm, training, groups of 2", list, norm(2));
  cases.add("batch_norm, evaluation", list, norm(2), false);
}

void add_model_ends(CheckCases& cases) {
  const CheckInput x{"x", {2, 4, 3}};
  cases.add("embed_tokens", {x, {"class_token", {1, 1, 3}}, {"position", {1, 5, 3}}},
            [](auto&, const auto& v) { return embed_tokens(v[0], v[1], v[2]); });
  cases.add("embed_tokens, no class token", {x, {"position", {1, 4, 3}}},
            [](auto&, const auto& v) { return embed_tokens(v[0], {}, v[1]); });
  cases.add("embed_tokens, no position", {x, {"class_token", {1, 1, 3}}},
            [](auto&, const auto& v) { return embed_tokens(v[0], v[1], {}); });
  cases.add("embed_tokens, three tokens before", {x, {"prefix", {1, 3, 3}}, {"position", {1, 7, 3}}},
            [](auto&, const auto& v) { return embed_tokens(v[0], v[1], v[2]); });
  for (const auto& [from, to] : {std::pair<Index, Index>{4, 2}, {2, 3}, {3, 3}})
    cases.add(fmt::format("interpolate_positions, {} to {}", from, to), {{"x", {1, 1 + from * from, 3}}},
              [from = from, to = to](auto&, const auto& v) { return interpolate_positions(v[0], 1, from, to); });
  cases.add("select_token", {x}, [](auto&, const auto& v) { return select_token(v[0], 2); });
  cases.add("skip_tokens", {x}, [](auto&, const auto& v) { return skip_tokens(v[0], 1); });
  cases.add("join_tokens", {{"first", {2, 1, 3}}, {"rest", {2, 4, 3}}},
            [](auto&, const auto& v) { return join_tokens(v[0], v[1]); });
  cases.add("l1_normalize_tokens", {{"x", {2, 4, 3}, -1, 1, 0.01}},
            [](auto&, const auto& v) { return l1_normalize_tokens(v[0], 1e-6); });
  cases.add("l1_normalize_tokens, small", {x}, [](auto&, const auto& v) { return l1_normalize_tokens(v[0], 10); });
  cases.add("mean_tokens", {x}, [](auto&, const auto& v) { return mean_tokens(v[0]); });

  const auto loss = [](double smoothing, bool soft) {
    return [=](auto& tape, const auto& v) {
      const auto targets = filled(tape, v[0].shape(), [=](Index i) {
        const Index image = i / 5, label = i % 5;
        return soft ? (label == image ? 0.7 : label == 4 ? 0.3 : 0.0) : label == image ? 1.0 : 0.0;
      });
      return cross_entropy(v[0], targets, smoothing, 7);
    };
  };
  const CheckInput logits{"logits", {3, 5}, -3, 3};
  cases.add("cross_entropy", {logits}, loss(0, false));
  cases.add("cross_entropy, smoothed", {logits}, loss(0.1, false));
  cases.add("cross_entropy, soft targets", {logits}, loss(0.1, true));
}

void add_self_supervision(CheckCases& cases) {
  cases.add("unit_rows", {{"x", {2, 3, 5}, -1, 1, 0.01}}, [](auto&, const auto& v) { return unit_rows(v[0]); });
  cases.add("join_rows", {{"a", {2, 3}}, {"b", {4, 3}}}, [](auto&, const auto& v) { return join_rows(v[0], v[1]); });
  for (const Index views : {2, 5}) {
    const CheckInput logits{"logits", {3 * views, 7}, -2, 2};
    cases.add(fmt::format("dino_loss, {} views", views), {logits}, [](auto& tape, const auto& v) {
      const auto q =
          filled(tape, Shape{3, 2, 7}, [](Index i) { return static_cast<double>(1 + (3 * i + i / 7) % 7) / 28; });
      return dino_loss(v[0], q, 0.4, 11);
    });
  }
}

/// Returns a new mechanism that is never destroyed, since cases, which are returned by value, refer to it.
const Mechanism* keep(std::unique_ptr<Mechanism> mechanism) {
  static auto* kept = new std::deque<std::unique_ptr<Mechanism>>;
  return kept->emplace_back(std::move(mechanism)).get();
}

/// Shapes in which mechanisms are checked. In three of them, d and e differ.
const AttentionCaseShape check_shapes[] = {
    {"N > d", 2, 3, 8, 8, 12, 2, 4, 0},       {"N < d", 1, 2, 4, 4, 14, 2, 2, 0, 9},
    {"class token", 2, 2, 9, 9, 10, 2, 4, 1}, {"one head, one token", 2, 1, 1, 1, 3, 1, 1, 0},
    {"M > N", 2, 3, 5, 7, 12, 0, 0, 0, 6},    {"M < N", 1, 2, 6, 4, 10, 0, 0, 0, 3},
    {"N > 4 d", 1, 2, 12, 12, 4, 3, 4, 0},
};

/// Shapes with more heads, tokens and channels than check_shapes have, in a grid that is taller than wide. The second
/// is for mechanisms that reject the first one's tokens before the grid.
const AttentionCaseShape larger_shapes[] = {{"10 x 2 grid, 4 tokens before", 1, 4, 24, 24, 36, 10, 2, 4, 10},
                                            {"6 x 4 grid", 1, 4, 24, 24, 36, 6, 4, 0, 10}};

/// Shapes with two blocks of queries and with two blocks of keys (attention/map_blocks.h).
const AttentionCaseShape block_shapes[] = {{"9 x 11 grid", 1, 2, 99, 99, 4, 9, 11, 0},
                                           {"1000 keys", 1, 1, 3, 1000, 3, 0, 0, 0}};

/// Three sequences, one with a single token.
const AttentionCaseShape sequences_shape{"7, 4 and 1 tokens", 3, 2, 7, 7, 8, 0, 0, 0};

/// Adds a case for the mechanism's penalty as a function of its parameters.
void add_penalty(CheckCases& cases, const std::string& label, const Mechanism& mechanism) {
  const AttentionLayout layout = mechanism.layout(6, 2);
  const AttentionShape shape{layout.heads, 6, 6, layout.query_width, layout.value_width, 2, 3, false};
  std::vector<CheckInput> list;
  for (const ParameterSpec& spec : mechanism.parameters(shape)) list.push_back({spec.name, spec.shape});
  cases.add(label + ", penalty", list, [=, &mechanism](auto&, const auto& v) {
    using Variable = std::decay_t<decltype(v[0])>;
    return penalty(mechanism, shape, std::span<const Variable>(v));
  });
}

/// Sequences of equal length, such as windows of a text or the pixels of images.
const AttentionCaseShape whole_sequences_shape{"6 and 6 tokens", 2, 2, 6, 6, 8, 0, 0, 0};

/// A sequence longer than the windows and buffers of most mechanisms, for causal variants.
const AttentionCaseShape long_sequence_shape{"40 tokens", 1, 2, 40, 40, 6, 0, 0, 0, 0, true};

/// Returns an error for each value of a named option or a bool that no variant has.
std::vector<std::string> unreached_values(const MechanismEntry& entry) {
  std::vector<std::string> errors;
  const std::vector<OptionValues> variants = entry.variants();
  for (const OptionInfo& option : entry.options()) {
    const bool is_bool = option.fallback == "true" || option.fallback == "false";
    for (const std::string& value : is_bool ? std::vector<std::string>{"false", "true"} : option.choices)
      if (std::ranges::none_of(variants, [&](const OptionValues& variant) {
            const auto found = variant.find(option.name);
            return (found == variant.end() ? option.fallback : found->second) == value;
          }))
        errors.push_back(fmt::format("[{}] no variant in variants() has {}={}, which is therefore not checked",
                                     entry.name, option.name, value));
  }
  return errors;
}

}  // namespace

void add_mechanism_cases(CheckCases& cases, const MechanismEntry& entry) {
  const std::size_t first = cases.size();
  bool packed = false;  // true after a case with packed operands, as in models: one shape of one variant suffices
  for (const OptionValues& options : entry.variants()) {
    std::string label = entry.name;
    for (const auto& [key, value] : options) label += ", " + key + "=" + value;
    const Mechanism& mechanism = *keep(entry.make(options));
    const std::size_t before = cases.size();
    const auto add = [&](const std::string& name, const AttentionCaseShape& shape, CaseOperands given) {
      auto accepted = attention_case(name, mechanism, shape, given);
      if (accepted) cases.push_back(*std::move(accepted));
      return accepted.has_value();
    };
    for (const AttentionCaseShape& shape : check_shapes) {
      add(label, shape, CaseOperands::apart);
      if (!packed && shape.queries == shape.keys) packed = add(label + ", packed", shape, CaseOperands::packed);
    }
    for (const AttentionCaseShape& shape : larger_shapes)
      if (add(label, shape, CaseOperands::apart)) {
        cases.back().along_direction = true;
        break;
      }
    for (const AttentionCaseShape& shape : block_shapes) {
      if (!add(label, shape, CaseOperands::apart)) continue;
      cases.back().along_direction = true;
      // Sums over a thousand keys with random parameters are too large for float.
      const auto per_key = [&](const CheckInput& input) {
        return input.name != "q" && input.name != "k" && input.name != "v" && input.shape.elements() >= shape.keys;
      };
      if (shape.keys > shape.queries && std::ranges::any_of(cases.back().inputs, per_key)) cases.pop_back();
    }
    add(label + ", sequences", sequences_shape, CaseOperands::sequences);
    AttentionCaseShape whole = whole_sequences_shape;
    const auto causal = options.find("causal");
    whole.growing = causal != options.end() && causal->second == "true";
    add(label + ", sequences", whole, CaseOperands::whole_sequences);
    if (whole.growing && add(label + ", sequences", long_sequence_shape, CaseOperands::whole_sequences))
      cases.back().along_direction = true;
    if (mechanism.penalty_term()) add_penalty(cases, label, mechanism);
    require(cases.size() > before, "[check] {} accepts none of the shapes that mechanisms are checked with", label);
  }
  if (const std::vector<std::string> errors = unreached_values(entry); first < cases.size() && !errors.empty())
    cases[first].memory_faults = [errors] { return errors; };
}

std::vector<CheckCase> all_check_cases() {
  CheckCases cases;
  add_elementary_cases(cases);
  add_activations(cases);
  add_products(cases);
  add_convolutions(cases);
  add_linear_of(cases);
  add_norms(cases);
  add_model_ends(cases);
  add_self_supervision(cases);
  add_sequence_cases(cases);
  for (const MechanismEntry& entry : mechanisms()) add_mechanism_cases(cases, entry);
  add_adder_cases(cases);
  return cases;
}

}  // namespace heed
