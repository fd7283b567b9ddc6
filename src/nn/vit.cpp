#include "heed/nn/vit.h"

#include "heed/base/suggest.h"

#include <cmath>
#include <set>

namespace heed {

namespace {

/// The configuration, or an Error that says what is wrong with it.
const ModelConfig& checked(const ModelConfig& model, const AttentionConfig& attention) {
  Experiment experiment;
  experiment.model = model;
  experiment.attention = attention;
  validate(experiment);
  return model;
}

template <class List>
const std::string& of_block(const List& list, Index block) {
  return list[list.size() == 1 ? 0 : static_cast<std::size_t>(block)];
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Every option must mean something to a mechanism that is used.
void check_options(const AttentionConfig& attention) {
  std::vector<std::string> known;
  for (const std::string& mechanism : attention.mechanism)
    for (std::string& name : option_names(find_mechanism(mechanism))) known.push_back(std::move(name));
  for (const auto& [name, value] : attention.options)
    require(contains(known, name), "{}: no mechanism of this model has an option '{}'{}", value.where, name,
            known.empty() ? std::string() : suggestion(name, known));
  for (const auto& [mechanism, options] : attention.per_mechanism) {
    const std::vector<std::string> own = option_names(find_mechanism(mechanism));
    for (const auto& [name, value] : options)
      require(contains(own, name), "{}: {} has no option '{}'{}", value.where, mechanism, name,
              own.empty() ? std::string() : suggestion(name, own));
  }
}

/// The mechanism of one block: options for all blocks that it knows, then its own table over them.
std::unique_ptr<Mechanism> mechanism_of(const AttentionConfig& attention, Index block) {
  const std::string& name = of_block(attention.mechanism, block);
  const std::vector<std::string> known = option_names(find_mechanism(name));
  OptionValues values;
  for (const auto& [option, value] : attention.options)
    if (contains(known, option)) values[option] = value.text;
  if (const auto own = attention.per_mechanism.find(name); own != attention.per_mechanism.end())
    for (const auto& [option, value] : own->second) values[option] = value.text;
  return make_mechanism(name, values);
}

std::vector<Block> make_blocks(ParameterList& list, const ModelConfig& model, const AttentionConfig& attention,
                               double dropout, double drop_path) {
  check_options(attention);
  const Index side = model.image / model.patch;
  AttentionShape shape;
  shape.class_token = model.pool == "cls";
  shape.grid_height = shape.grid_width = side;
  shape.queries = side * side + shape.class_token;
  std::vector<Block> blocks;
  for (Index i = 0; i < model.depth; ++i) {
    // Stochastic depth grows linearly from 0 at the first block (arXiv:1603.09382, Section 3).
    const double rate =
        model.depth == 1 ? 0 : drop_path * static_cast<double>(i) / static_cast<double>(model.depth - 1);
    std::optional<AdderLinearOptions> adder;
    if (of_block(model.linear, i) == "adder") adder = adder_options(model);
    blocks.emplace_back(list, "blocks." + std::to_string(i), model, mechanism_of(attention, i), shape, dropout, rate,
                        static_cast<std::uint64_t>(i), adder);
  }
  return blocks;
}

Initial convolution_initial(Index fan_in) { return Initial::uniform(1 / std::sqrt(static_cast<double>(fan_in))); }

}  // namespace

VisionTransformer::VisionTransformer(const ModelConfig& model, const AttentionConfig& attention, double dropout,
                                     double drop_path)
    : config_(checked(model, attention)), dropout_(dropout) {
  const Index side = model.image / model.patch, fan_in = model.channels * model.patch * model.patch;
  const bool cls = model.pool == "cls";
  if (cls) class_token_ = list_.add({"cls_token", {1, 1, model.dim}, Initial::truncated_normal(0.02), false});
  if (model.pos_embed)
    position_ = list_.add({"pos_embed", {1, side * side + cls, model.dim}, Initial::truncated_normal(0.02), false});
  patch_weight_ = list_.add(
      {"patch_embed.proj.weight", {model.dim, model.channels, model.patch, model.patch}, convolution_initial(fan_in)});
  patch_bias_ = list_.add({"patch_embed.proj.bias", {model.dim}, convolution_initial(fan_in), false});
  blocks_ = make_blocks(list_, model, attention, dropout, drop_path);
  norm_.emplace(list_, "norm", model.dim);
  head_.emplace(list_, "head", model.dim, model.classes);
}

template Var<float> VisionTransformer::operator()(Var<float>) const;
template Var<double> VisionTransformer::operator()(Var<double>) const;
template Var<Counted> VisionTransformer::operator()(Var<Counted>) const;
template void VisionTransformer::visit_attention(Var<float>, const AttentionVisitor<float>&) const;
template void VisionTransformer::visit_attention(Var<double>, const AttentionVisitor<double>&) const;
template std::vector<Tensor<float>> VisionTransformer::attention_maps(Var<float>) const;
template std::vector<Tensor<double>> VisionTransformer::attention_maps(Var<double>) const;

}  // namespace heed
