#include "heed/attention/capabilities/preparation.h"
#include "heed/checks/attention_case.h"

#include "cases.h"
#include "composition.h"
#include "memory.h"

#include "heed/ops/attention.h"

namespace heed {

std::optional<CheckCase> attention_case(const std::string& label, const Mechanism& mechanism,
                                        const AttentionCaseShape& s, CaseOperands given) {
  AttentionLayout layout = mechanism.layout(s.dim, s.heads);
  const bool whole = given == CaseOperands::whole_sequences, sequences = whole || given == CaseOperands::sequences;
  AttentionShape shape =
      layout.among(s.queries, {.grid_height = s.grid_height, .grid_width = s.grid_width, .class_token = s.class_token});
  if (sequences) shape.grid_height = shape.grid_width = 0, shape.longest = s.queries, shape.growing = s.growing;
  shape.keys = s.keys;
  if (given == CaseOperands::apart && s.value_width > 0) {
    AttentionShape other = shape;
    other.value_width = s.value_width;
    try {
      mechanism.check(other);
      layout.value_width = shape.value_width = s.value_width;
    } catch (const Error&) {
      // The mechanism requires values as wide as keys, so the case keeps e = d.
    }
  }
  std::vector<Index> starts{0};
  try {
    for (Index image = 0; image < (sequences ? s.images : 1); ++image) {
      AttentionShape one = shape;
      if (sequences) one = layout.among(s.queries - (whole ? 0 : 3 * image), shape), one.whole = whole;
      mechanism.check(one);
      starts.push_back(starts.back() + one.queries);
    }
  } catch (const Error&) {
    return {};
  }
  std::vector<CheckInput> list;
  const auto add_operand = [&](const char* name, Index heads, Index tokens, Index channels, double bound) {
    if (channels > 0)
      list.push_back(
          {name, {s.images, heads, tokens, channels}, -bound, bound, 0, {"image", "head", "token", "channel"}});
  };
  if (sequences) {
    list.push_back({"qkv", {1, starts.back(), layout.total()}, -2, 2});
  } else if (given == CaseOperands::packed) {
    list.push_back({"qkv", {s.images, s.queries, layout.total()}, -2, 2, 0, {"image", "token", "channel"}});
  } else {
    add_operand("q", layout.heads, s.queries, layout.query_width, 2);
    add_operand("k", layout.key_heads, s.keys, layout.key_width, 2);
    add_operand("v", layout.key_heads, s.keys, layout.value_width, 1);
  }
  const std::size_t operands = list.size();
  const std::vector<ParameterSpec> specs = mechanism.parameters(shape);
  for (const ParameterSpec& spec : specs)
    if (spec.trainable) list.push_back({spec.name, spec.shape});
  const bool has_query = layout.query_width > 0, has_key = layout.key_width > 0;
  const Shape drawn_shape = noise_shape(mechanism, shape);
  CheckCase c = check_case(label + ", " + s.label, list, [=, &mechanism](auto& tape, const auto& v) {
    using Variable = std::decay_t<decltype(v[0])>;
    std::size_t next = operands;
    std::vector<Variable> own;
    for (const ParameterSpec& spec : specs) {
      if (spec.trainable) {
        own.push_back(v[next++]);
        continue;
      }
      const View values(tape.memory(spec.shape.elements()), spec.shape);
      fill_initial(spec.initial, RandomStream(1).derive(spec.name), values);
      own.push_back(tape.constant(values));
    }
    const decltype(own[0].value()) noise =
        filled(tape, drawn_shape, [](Index i) { return RandomStream(5).uniform(i, -1, 3); });
    const std::span<const Variable> tensors(own);
    if (sequences) tape.divide_rows({starts, 0, shape.longest});
    if (given != CaseOperands::apart)
      return attention(mechanism, packed_operands(v[0], layout), layout, shape, tensors, noise);
    next = 0;
    const Variable q = has_query ? v[next++] : Variable{}, k = has_key ? v[next++] : Variable{};
    return attention(mechanism, q, k, v[next], shape, tensors, noise);
  });
  c.note = mechanism.traits().surrogate;
  if (!sequences || whole) c.memory_faults = [=, &mechanism] { return memory_faults(mechanism, layout, shape); };
  if (sequences) return c;
  // A sum over a single token has one term, so it cannot be distinguished from a product.
  c.of_attention = s.queries > 1 && s.keys > 1 && !is_composed(mechanism);
  c.setting = label;
  c.sizes = {{'B', s.images},   {'H', shape.heads}, {'N', shape.queries},
             {'M', shape.keys}, {'d', shape.width}, {'e', shape.value_width}};
  if (given == CaseOperands::apart && has_composition(mechanism))
    c.against_composed = [=, &mechanism](std::uint64_t seed) {
      return compare_with_composition(label + ", composed form, " + s.label, mechanism, shape, seed);
    };
  return c;
}

}  // namespace heed
