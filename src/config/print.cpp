// Printing of TOML with every key and its meaning. Numbers have enough digits to parse to the same value.
#include "heed/base/random.h"
#include "heed/base/split.h"
#include "heed/config/experiment.h"
#include "heed/config/toml_text.h"

#include <algorithm>
#include <cctype>
#include <cmath>

namespace heed {

std::string toml_text(double value) {
  const std::string text = fmt::format("{}", value);
  // Adds ".0" to a whole number, so that other TOML readers recognise a float.
  return text.find_first_not_of("-0123456789") == std::string::npos ? text + ".0" : text;
}

std::string toml_text(const std::string& value) {
  std::string text = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\')
      text += fmt::format("\\{}", c);
    else if (byte < 0x20 || byte == 0x7f)
      text += fmt::format("\\u{:04x}", byte);
    else
      text += c;
  }
  return text + '"';
}

namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }

std::string text_of(Index value) { return fmt::format("{}", value); }

std::string text_of(const Sides& sides) { return toml_text(sides); }

std::string text_of(const std::optional<bool>& value) { return text_of(value.value()); }

std::string text_of(double value) { return toml_text(value); }

std::string text_of(const std::string& value) { return toml_text(value); }

template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string text;
  for (const T& value : values) text += (text.empty() ? "" : ", ") + text_of(value);
  return "[" + text + "]";
}

template <class T>
std::string text_of(const T& value, const Rule&) {
  return text_of(value);
}

// Returns the values of a key as TOML; a single value for all blocks becomes a scalar.
template <class T>
std::string text_of(const std::vector<T>& values, const Rule& rule) {
  return rule.per_block && values.size() == 1 ? text_of(values.front()) : text_of(values);
}

std::string key_of(const std::string& key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](unsigned char c) {
    return c < 128 && (std::isalnum(c) || c == '_' || c == '-');
  });
  return bare ? key : text_of(key);
}

// Returns true if parsing `text` as a T and printing it gives the same text.
template <class T>
bool spells(const std::string& text) {
  T value{};
  return parse_number(text, value) && std::isfinite(value) && text_of(value) == text;
}

// Returns an option's text, quoted unless it parses to the same text without quotes.
std::string option_text(const std::string& text) {
  const bool bare = text == "true" || text == "false" || spells<Index>(text) || spells<double>(text);
  return bare ? text : text_of(text);
}

std::string option_text(const OptionValue& value) {
  if (value.list.empty()) return option_text(value.text);
  std::string items;
  for (const std::string& text : value.list) items += (items.empty() ? "" : ", ") + option_text(text);
  return "[" + items + "]";
}

template <class T>
bool is_unset(const T&) {
  return false;
}
bool is_unset(const std::optional<bool>& value) { return !value; }

// Calls f(table, key, value, meaning) for all settings of an experiment, in the order of a file. Options have no
// meaning here: their mechanism declares it.
template <class F>
void for_settings(const Experiment& experiment, const F& f) {
  tables(experiment, [&](std::string_view table, const auto& config) {
    if (!uses_table(experiment, table)) return;
    fields(config, [&](std::string_view key, const auto& member, const Rule& rule, std::string_view meaning) {
      if (!use_of(config, key, rule).known || is_unset(member)) return;
      f(std::string(table), std::string(key), text_of(member, rule), meaning);
    });
    if constexpr (requires { config.per_mechanism; }) {
      const auto print = [&](const std::string& of, const Options& options) {
        for (const auto& [name, value] : options) f(of, key_of(name), option_text(value), "");
      };
      print("attention", config.options);
      for (const auto& [mechanism, options] : config.per_mechanism) print("attention." + key_of(mechanism), options);
    }
  });
}

}  // namespace

std::string to_toml(const Experiment& experiment) {
  std::string text, table;
  for_settings(experiment,
               [&](const std::string& of, const std::string& key, const std::string& value, std::string_view meaning) {
                 if (of != table) text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", of);
                 table = of;
                 const std::string line = fmt::format("{} = {}", key, value);
                 text += meaning.empty() ? line + "\n" : fmt::format("{:<40}# {}\n", line, meaning);
               });
  return text;
}

std::map<std::string, std::string> settings_of(const Experiment& experiment) {
  std::map<std::string, std::string> settings;
  for_settings(experiment, [&](const std::string& table, const std::string& key, const std::string& value,
                               std::string_view) { settings[table + "." + key] = value; });
  return settings;
}

Experiment result_settings(Experiment experiment) {
  experiment.data.path.clear();
  experiment.data.recorded = {};
  experiment.data.verify = false;
  experiment.train.max_steps = 0;
  experiment.train.checkpoint_steps = 0;
  experiment.train.log_steps = false;
  return experiment;
}

std::string configuration_hash(const Experiment& experiment) {
  std::map<std::string, std::string> of = settings_of(result_settings(experiment));
  // Keeps the hashes of existing results: train.microbatch is hashed under the name and with the default that it had
  // before 0.3.0. The size of microbatches changes rounding only.
  of.erase("train.microbatch");
  of["train.piece"] = std::to_string(experiment.train.microbatch > 0 ? experiment.train.microbatch : 8);
  // Keys that earlier versions lack are hashed only if they differ from the default.
  for (const auto& [key, value] :
       {std::pair("data.orientation", "true"), std::pair("data.skip_bad", "false"),
        std::pair("data.header", "\"auto\""), std::pair("model.registers", "0"), std::pair("model.distilled", "false"),
        std::pair("model.embed_prefix", "true"), std::pair("model.pool_norm", "\"before\""),
        std::pair("model.qkv_bias", "true"), std::pair("model.pre_norm", "false"), std::pair("model.norm_eps", "1e-06"),
        std::pair("data.crop_fraction", "0.875"), std::pair("data.interpolation", "\"bicubic\"")})
    if (const auto found = of.find(key); found != of.end() && found->second == value) of.erase(found);
  if (experiment.model.family == "vit" && experiment.model.block_scale == 0) of.erase("model.layer_scale");
  if (experiment.model.class_token == (experiment.model.pool == "cls")) of.erase("model.class_token");
  for (const auto& [key, value] :
       {std::pair("train.init_positions", "\"plain\""), std::pair("data.resize", "\"squash\"")})
    if (const auto found = of.find(key); found != of.end())
      found->second = found->second == "\"none\"" ? "false" : found->second == value ? "true" : found->second;
  std::string settings;
  for (const auto& [key, value] : of) settings += key + " = " + value + "\n";
  return fmt::format("{:016x}", RandomStream().derive(settings).bits(0));
}

}  // namespace heed
