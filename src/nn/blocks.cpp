#include "blocks.h"

#include "heed/base/suggest.h"

namespace heed {

namespace {

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

/// Has the mechanism a causal form? (One without knows the option all the same, as causal=false.)
bool has_causal_form(const MechanismEntry& entry) {
  const std::vector<OptionInfo> options = entry.options();
  return std::any_of(options.begin(), options.end(), [](const OptionInfo& option) { return option.name == "causal"; });
}

std::unique_ptr<Mechanism> mechanism_of(const AttentionConfig& attention, Index block, bool causal) {
  const std::string& name = of_block(attention.mechanism, block);
  OptionValues values = options_of_block(attention, block);
  if (causal) {
    require(has_causal_form(find_mechanism(name)),
            "[attention] mechanism = {} has no causal form, which task = \"lm\" needs", in_quotes(name));
    const std::string& given = values.try_emplace("causal", "true").first->second;
    require(given == "true", "[attention] causal = {}; task = \"lm\" needs causal attention: expected true", given);
  }
  return make_mechanism(name, values);
}

}  // namespace

void check_model(const ModelConfig& model, const AttentionConfig& attention) {
  Experiment experiment;
  experiment.model = model;
  experiment.attention = attention;
  validate(experiment);
}

/// Options for all blocks that it knows, then its own table over them.
OptionValues options_of_block(const AttentionConfig& attention, Index block) {
  const std::string& name = of_block(attention.mechanism, block);
  const std::vector<std::string> known = option_names(find_mechanism(name));
  OptionValues values;
  for (const auto& [option, value] : attention.options)
    if (contains(known, option)) values[option] = value.text;
  if (const auto own = attention.per_mechanism.find(name); own != attention.per_mechanism.end())
    for (const auto& [option, value] : own->second) values[option] = value.text;
  return values;
}

std::vector<Block> make_blocks(ParameterList& list, const ModelConfig& model, const AttentionConfig& attention,
                               const BlocksSetting& setting) {
  check_options(attention);
  std::vector<Block> blocks;
  for (Index i = 0; i < model.depth; ++i) {
    // Stochastic depth grows linearly from 0 at the first block (arXiv:1603.09382, Section 3).
    const double rate =
        model.depth == 1 ? 0 : setting.drop_path * static_cast<double>(i) / static_cast<double>(model.depth - 1);
    BlockOptions options{setting.dropout, rate, static_cast<std::uint64_t>(i)};
    if (of_block(model.linear, i) == "adder") options.adder = adder_options(model);
    blocks.emplace_back(list, "blocks." + std::to_string(i), model, mechanism_of(attention, i, setting.causal),
                        setting.shape, options);
  }
  return blocks;
}

}  // namespace heed
