#include "blocks.h"

#include "heed/base/suggest.h"
#include "mechanism_choice.h"

#include <fmt/ranges.h>

namespace heed {

namespace {

/// Returns true if the mechanism has a causal form: if causal is among its listed options. Other mechanisms accept only
/// causal=false, and do not list the option.
bool has_causal_form(const MechanismEntry& entry) {
  const std::vector<OptionInfo> options = entry.options();
  return std::any_of(options.begin(), options.end(), [](const OptionInfo& option) { return option.name == "causal"; });
}

std::vector<std::string> with_causal_form() {
  std::vector<std::string> names;
  for (const MechanismEntry& entry : mechanisms())
    if (has_causal_form(entry)) names.emplace_back(entry.name);
  return names;
}

/// Returns the option causal of a mechanism; null if it is not set.
const std::string* causal_option(const AttentionConfig& attention, const std::string& mechanism) {
  const auto in = [](const Options& options) -> const std::string* {
    const auto found = options.find("causal");
    return found == options.end() ? nullptr : &found->second.text;
  };
  const auto own = attention.per_mechanism.find(mechanism);
  const std::string* const of_mechanism = own == attention.per_mechanism.end() ? nullptr : in(own->second);
  return of_mechanism ? of_mechanism : in(attention.options);
}

}  // namespace

Experiment experiment_of(const ModelConfig& model, const AttentionConfig& attention) {
  Experiment experiment;
  experiment.model = model;
  experiment.attention = attention;
  return experiment;
}

bool is_causal(const AttentionConfig& attention, const std::string& mechanism) {
  const std::string* const causal = causal_option(attention, mechanism);
  return causal && *causal == "true";
}

AttentionConfig made_causal(AttentionConfig attention) {
  for (const std::string& name : attention.mechanism) {
    require(has_causal_form(find_mechanism(name)),
            "[attention] mechanism = {} has no causal form, which task = \"lm\" requires; expected one of {}",
            in_quotes(name), fmt::join(with_causal_form(), ", "));
    const std::string* const causal = causal_option(attention, name);
    require(!causal || *causal == "true",
            "[attention] causal = {}; expected true, since task = \"lm\" requires causal attention",
            causal ? *causal : "");
  }
  attention.options["causal"] = {"true", "task = \"lm\""};
  return attention;
}

std::vector<Block> make_blocks(ParameterList& list, const ModelConfig& model, const AttentionConfig& attention,
                               const BlocksSetting& setting) {
  check_options(attention);
  std::vector<Block> blocks;
  for (Index i = 0; i < model.depth; ++i) {
    // The rate of stochastic depth grows linearly from 0 at the first block (arXiv:1603.09382, Section 3).
    const double rate = drop_path_at(setting.drop_path, i, model.depth);
    BlockOptions options{setting.dropout, rate, static_cast<std::uint64_t>(i)};
    if (item_of(model.linear, i) == "adder") options.adder = adder_options(model);
    blocks.emplace_back(list, "blocks." + std::to_string(i), model, mechanism_of(attention, i), setting.shape, options);
  }
  return blocks;
}

}  // namespace heed
