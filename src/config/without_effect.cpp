// Detection of keys that are set but have no effect in their experiment.
#include "heed/attention/mechanism.h"

#include "load.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace heed {

namespace {

/// A key that has no effect unless `met` returns true; `need` is the condition in words.
struct KeyNeed {
  std::string key;
  bool (*met)(const Experiment&);
  const char* need;
};

bool has(const std::vector<std::string>& list, std::string_view item) {
  return std::find(list.begin(), list.end(), item) != list.end();
}

bool has_adder_layers(const Experiment& x) { return has(x.model.linear, "adder"); }
bool matches_weights(const Experiment& x) { return x.train.init == "matching"; }
bool has_local_crops(const Experiment& x) { return x.dino.local_crops > 0; }

bool crops_middle(const Experiment& x) { return x.data.resize == "crop"; }

bool warms_up(const Experiment& x) { return x.optim.schedule != "constant"; }

/// Returns false if a warm-up in epochs takes the whole training, so that the schedule after it never begins. A warm-up
/// in steps is checked by `heed train`, since the number of steps per epoch is unknown here.
bool ends_warm_up(const Experiment& x) {
  return !x.optim.falls_to_min() || x.optim.warmup_steps > 0 ||
         x.optim.warmup_epochs < static_cast<double>(x.train.epochs);
}

/// Returns true if patience can run out before the last epoch. The first epoch is always the best so far.
bool can_run_out_of_patience(const Experiment& x) { return x.train.patience + 1 < x.train.epochs; }

/// Returns true if stochastic depth can skip a block. The rate grows from 0 at the first block. CvT skips blocks of the
/// last stage only; in XCiT all blocks have the same rate.
bool skips_blocks(const Experiment& x) {
  const std::vector<Index>& depth = x.model.stages.depth;
  if (!x.model.is_staged()) return x.model.depth > 1 || x.model.family == "xcit";
  return depth.back() > 1 || (x.model.family == "soft-pyramid" && depth.size() > 1);
}

const KeyNeed key_needs[] = {
    {"model.embed_prefix", [](const Experiment& x) { return x.model.pos_embed && x.model.prefix_tokens() > 0; },
     "model.pos_embed = true and a token before the patches"},
    {"model.gate_act", [](const Experiment& x) { return x.model.gate; }, "model.gate = true"},
    {"model.tokens_norm", [](const Experiment& x) { return x.model.cls_depth > 1; }, "model.cls_depth above 1"},
    {"model.ffn_act", has_adder_layers, "model.linear = \"adder\""},
    {"model.input_grad", has_adder_layers, "model.linear = \"adder\""},
    {"model.weight_grad", has_adder_layers, "model.linear = \"adder\""},
    {"model.weight_scale", has_adder_layers, "model.linear = \"adder\""},
    {"data.crop_fraction", crops_middle, "data.resize = \"crop\""},
    {"data.interpolation", crops_middle, "data.resize = \"crop\""},
    {"data.crop_padding", [](const Experiment& x) { return has(x.data.augment, "crop"); }, "\"crop\" in data.augment"},
    {"data.mixup_alpha", [](const Experiment& x) { return has(x.data.augment, "mixup"); }, "\"mixup\" in data.augment"},
    {"data.cutmix_alpha", [](const Experiment& x) { return has(x.data.augment, "cutmix"); },
     "\"cutmix\" in data.augment"},
    {"data.erase_probability", [](const Experiment& x) { return has(x.data.augment, "erase"); },
     "\"erase\" in data.augment"},
    {"data.randaugment_ops", [](const Experiment& x) { return has(x.data.augment, "randaugment"); },
     "\"randaugment\" in data.augment"},
    {"data.randaugment_magnitude", [](const Experiment& x) { return has(x.data.augment, "randaugment"); },
     "\"randaugment\" in data.augment"},
    {"data.grey", [](const Experiment& x) { return x.data.source.starts_with("cifar"); },
     "data.source = \"cifar10\" or \"cifar100\", whose images have colours"},
    {"optim.momentum", [](const Experiment& x) { return x.optim.name == "sgd"; }, "optim.name = \"sgd\""},
    {"optim.betas", [](const Experiment& x) { return x.optim.name == "adamw"; }, "optim.name = \"adamw\""},
    {"optim.eps", [](const Experiment& x) { return x.optim.name == "adamw"; }, "optim.name = \"adamw\""},
    {"optim.min_lr", [](const Experiment& x) { return x.optim.falls_to_min(); },
     "optim.schedule = \"cosine\" or \"linear\""},
    {"optim.min_lr", ends_warm_up, "optim.warmup_epochs below train.epochs"},
    {"optim.schedule", ends_warm_up, "optim.warmup_epochs below train.epochs"},
    {"optim.warmup_epochs", [](const Experiment& x) { return x.optim.warmup_steps == 0; }, "optim.warmup_steps = 0"},
    {"optim.warmup_epochs", warms_up, "an optim.schedule other than \"constant\""},
    {"optim.warmup_steps", warms_up, "an optim.schedule other than \"constant\""},
    {"train.patience", can_run_out_of_patience, "train.epochs above train.patience + 1"},
    {"train.drop_path", skips_blocks, "more than one block, since the first is never skipped"},
    {"train.init_head", [](const Experiment& x) { return x.train.init == "strict"; }, "train.init = \"strict\""},
    {"train.init_skip", matches_weights, "train.init = \"matching\""},
    {"train.init_parts", matches_weights, "train.init = \"matching\""},
    {"train.init_mechanism", matches_weights, "train.init = \"matching\""},
    {"dino.local_scale", has_local_crops, "dino.local_crops above 0"},
    {"dino.local_size", has_local_crops, "dino.local_crops above 0"},
    {"dino.teacher_temp_start", [](const Experiment& x) { return x.dino.teacher_temp_warmup > 0; },
     "dino.teacher_temp_warmup above 0"},
    {"dino.teacher_temp_warmup", [](const Experiment& x) { return x.dino.teacher_temp_start != x.dino.teacher_temp; },
     "a dino.teacher_temp_start other than dino.teacher_temp"},
};

/// Returns an experiment with the same family, task, data set and method, and defaults for all other keys.
Experiment defaults_of(const Experiment& x) {
  Experiment defaults;
  defaults.model.family = x.model.family, defaults.model.task = x.model.task;
  defaults.data.name = x.data.name, defaults.train.method = x.train.method;
  return defaults;
}

std::string line_of(const std::string& where, const std::string& key, const std::string& value,
                    const std::string& need) {
  return fmt::format("{}: {} = {} has no effect; it needs {}", where, key, value, need);
}

const OptionValue* given(const Options& options, const std::string& name) {
  const auto found = options.find(name);
  return found == options.end() ? nullptr : &found->second;
}

/// Returns the setting of another option that this option requires and that is missing, such as "norm = l2"; empty if
/// the option has an effect in the mechanism.
std::string need_of_option(const AttentionConfig& attention, const MechanismEntry& entry, const std::string& option) {
  const auto own = attention.per_mechanism.find(entry.name);
  const auto is_one_of = [&](const std::string& other, const std::vector<std::string>& texts) {
    const OptionValue* value = own == attention.per_mechanism.end() ? nullptr : given(own->second, other);
    if (!value) value = given(attention.options, other);
    if (value && !value->list.empty())
      return std::any_of(value->list.begin(), value->list.end(),
                         [&](const std::string& text) { return has(texts, text); });
    for (const OptionInfo& info : entry.options())
      if (info.name == other) return has(texts, value ? value->text : info.fallback);
    return true;
  };
  for (const OptionNeed& need : entry.needs())
    if (need.option == option && !is_one_of(need.other, need.values))
      return fmt::format("{} = {}", need.other, fmt::join(need.values, " or "));
  return "";
}

/// Adds the effects of the options in a table for the mechanisms `names`.
void add_options(const AttentionConfig& attention, const std::vector<std::string>& names, const std::string& table,
                 const Options& options, std::vector<KeyEffect>& effects) {
  for (const auto& [option, value] : options) {
    std::string need;
    bool has_effect = false, is_default = true;
    for (const std::string& name : names) {
      const MechanismEntry& entry = find_mechanism(name);
      const std::vector<OptionInfo> known = entry.options();
      const auto info =
          std::find_if(known.begin(), known.end(), [&name = option](const OptionInfo& of) { return of.name == name; });
      if (info == known.end()) continue;
      need = need_of_option(attention, entry, option);
      has_effect = has_effect || need.empty();
      is_default = is_default && value.list.empty() && value.text == info->fallback;
    }
    const std::string text = value.list.empty() ? value.text : fmt::format("{}", fmt::join(value.list, ", "));
    const std::string key = fmt::format("{}.{}", table, option);
    if (!is_default) effects.push_back({key, has_effect, line_of(value.where, key, text, need)});
  }
}

/// Returns the effects of all options. Unknown mechanisms are reported when the model is created.
std::vector<KeyEffect> option_effects(const AttentionConfig& attention) {
  const auto known = [](const std::string& name) {
    for (const MechanismEntry& entry : mechanisms())
      if (name == entry.name) return true;
    return false;
  };
  std::vector<KeyEffect> effects;
  std::vector<std::string> names = attention.mechanism;
  std::erase_if(names, [&](const std::string& name) { return !known(name); });
  add_options(attention, names, "attention", attention.options, effects);
  for (const auto& [mechanism, options] : attention.per_mechanism)
    if (known(mechanism)) add_options(attention, {mechanism}, "attention." + mechanism, options, effects);
  return effects;
}

}  // namespace

std::vector<std::string> options_without_effect(const AttentionConfig& attention) {
  std::vector<std::string> lines;
  for (const KeyEffect& of : option_effects(attention))
    if (!of.has_effect) lines.push_back(of.line);
  return lines;
}

std::vector<std::string> options_without_effect(const std::string& mechanism,
                                                const std::map<std::string, std::string>& values,
                                                const std::string& where) {
  AttentionConfig config{.mechanism = {mechanism}, .options = {}, .per_mechanism = {}};
  for (const auto& [name, value] : values) config.options[name] = {value, where};
  return options_without_effect(config);
}

std::vector<KeyEffect> key_effects(const Loaded& loaded) {
  const Experiment& x = loaded.experiment;
  std::vector<KeyEffect> effects;
  std::set<std::string> unmet;
  const std::map<std::string, std::string> now = settings_of(x), defaults = settings_of(defaults_of(x));
  for (const KeyNeed& of : key_needs) {
    const auto at = loaded.written.find(of.key);
    if (at == loaded.written.end() || !now.contains(of.key) || now.at(of.key) == defaults.at(of.key)) continue;
    effects.push_back({of.key, of.met(x), line_of(at->second, of.key, now.at(of.key), of.need)});
    if (!effects.back().has_effect) unmet.insert(of.key);
  }
  // A key with several needs has an effect only if all are met.
  std::erase_if(effects, [&](const KeyEffect& of) { return of.has_effect && unmet.contains(of.key); });
  for (KeyEffect& of : option_effects(x.attention)) effects.push_back(std::move(of));
  return effects;
}

}  // namespace heed
