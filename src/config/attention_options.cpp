#include "heed/config/attention_options.h"

#include "load.h"

#include "heed/base/suggest.h"
#include "heed/config/toml_text.h"

#include <optional>

namespace heed {

namespace {

/// Returns the text of a scalar, for the mechanism to parse; nothing for other nodes.
std::optional<std::string> text_of_scalar(const toml::node& node) {
  if (const auto* value = node.as_string()) return value->get();
  if (const auto* value = node.as_integer()) return fmt::format("{}", value->get());
  if (const auto* value = node.as_floating_point()) return toml_text(value->get());
  if (const auto* value = node.as_boolean()) return value->get() ? "true" : "false";
  return {};
}

/// Returns an option's value or, if a staged model has a list with a value for each stage, the list. `full_key`
/// includes the table.
OptionValue option_value(const Source& source, const std::string& full_key, const toml::key& key,
                         const toml::node& node, const ModelConfig& model) {
  OptionValue option{"", source.at(key)};
  const toml::array* const list = model.is_staged() ? node.as_array() : nullptr;
  const auto text_of = [&](const toml::node& one, const std::string& of_stage) {
    const std::optional<std::string> text = text_of_scalar(one);
    require(text.has_value(), "{}: {}: expected a string, number or boolean, found {}{}", source.at(key),
            in_quotes(full_key), found(one), of_stage);
    return *text;
  };
  for (std::size_t i = 0; list && i < list->size(); ++i)
    option.list.push_back(text_of((*list)[i], fmt::format(" for stage {}", model.stage_number(i))));
  if (option.list.empty()) option.text = text_of(node, "");
  return option;
}

}  // namespace

void read_option(const Source& source, const toml::key& key, const toml::node& node, Experiment& experiment) {
  const std::string name(key.str()), full = "attention." + name;
  AttentionConfig& attention = experiment.attention;
  const toml::table* const table = node.as_table();
  if (!table) {
    attention.options[name] = option_value(source, full, key, node, experiment.model);
    return;
  }
  for (const auto& [option, value] : *table)
    attention.per_mechanism[name][std::string(option.str())] =
        option_value(source, fmt::format("{}.{}", full, option.str()), option, value, experiment.model);
}

}  // namespace heed
