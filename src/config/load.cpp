// Applies the file's chain of bases, base first, then the overrides; a later value of a key replaces an earlier one.
// Keys that are not set keep their defaults.
#include "heed/config/experiment.h"
#include "heed/config/installed.h"
#include "heed/config/model_of_tensors.h"

#include "load.h"
#include "toml_document.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/toml_text.h"
#include "heed/io/file.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <mutex>

namespace heed {
namespace {

/// A renamed key of an experiment, and the version of heed that renamed it.
struct RenamedKey {
  std::string_view table, former, name, since;
};
constexpr RenamedKey renamed_keys[] = {{"train", "piece", "microbatch", "0.3.0"}};

/// Returns the current name of a key of a table. Warns on stderr once per former name. Throws Error if `values` has the
/// key under both names.
std::string present_name(const Source& source, std::string_view table, const toml::key& key,
                         const toml::table& values) {
  static std::once_flag announced[std::size(renamed_keys)];
  for (std::size_t i = 0; i < std::size(renamed_keys); ++i) {
    const RenamedKey& renamed = renamed_keys[i];
    if (table != renamed.table || key.str() != renamed.former) continue;
    require(!values.contains(renamed.name), "{}: '{}.{}' and '{}.{}' are the same key; set only one of them",
            source.at(key), table, renamed.former, table, renamed.name);
    std::call_once(announced[i], [&] {
      fmt::print(stderr, "heed: {}.{} was renamed to {}.{} in {}\n", table, renamed.former, table, renamed.name,
                 renamed.since);
    });
    return std::string(renamed.name);
  }
  return std::string(key.str());
}

// Returns the end of an error about an unknown key: the nearest known key, or all of them.
std::string suggestion_of(std::string_view table, const std::vector<std::string>& own, std::string_view unknown) {
  const std::string near = nearest(unknown, own);
  return near.empty() ? suggestion(unknown, own) : fmt::format("; did you mean '{}.{}'?", table, near);
}

std::vector<std::string> keys_of(const ModelConfig& model) {
  std::vector<std::string> keys;
  fields(model, [&](std::string_view key, const auto&, const Rule&, std::string_view) { keys.emplace_back(key); });
  return keys;
}

// Returns the end of an error about an unknown key of a table or, if `table` is empty, of the file. Suggests the table
// that has the key, otherwise a similar key or all keys.
std::string key_suggestion(const Experiment& experiment, std::string_view table, std::string_view unknown) {
  std::string elsewhere;
  std::vector<std::string> names, own;
  tables(experiment, [&](std::string_view name, const auto& config) {
    names.emplace_back(name);
    fields(config, [&](std::string_view key, const auto&, const Rule&, std::string_view) {
      if (key == unknown && elsewhere.empty()) elsewhere = fmt::format("{}.{}", name, key);
      if (name == table) own.push_back(fmt::format("{}", key));
    });
  });
  if (!elsewhere.empty()) return fmt::format("; did you mean '{}'?", elsewhere);
  return table.empty() ? suggestion(unknown, names) : suggestion_of(table, own, unknown);
}

// Returns the settings that determine a table's keys, for example `family = "vit"`.
std::string kind_of(const Experiment& x, std::string_view table) {
  if (table == "data") return fmt::format("name = {}", toml_text(x.data.name));
  const std::string family = fmt::format("family = {}", toml_text(x.model.family));
  return x.model.family != "sequence" || x.model.task.empty()
             ? family
             : fmt::format("{} with task = {}", family, toml_text(x.model.task));
}

// Returns true if any model family has this key.
bool is_model_key(std::string_view key) {
  return std::any_of(std::begin(family_names), std::end(family_names), [&](const auto& family) {
    ModelConfig model;
    model.family = family.first;
    const std::vector<std::string> own = keys_of(model);
    return std::find(own.begin(), own.end(), key) != own.end();
  });
}

struct Document {
  Source source;
  toml::table table;
  bool may_hold_unused;                 // allows options of mechanisms that no block has
  std::vector<std::string> mechanisms;  // the model's mechanisms after this document and all earlier ones
};

class Loader {
 public:
  Experiment experiment;
  std::map<std::string, std::string> written;  // last source of each key

  // Reads the documents of a file, base first. `chain` holds the files whose base is being read; `base`, if given,
  // replaces the base that the file names.
  void read(const std::string& path, std::vector<std::string> chain, const toml::node* base,
            const std::string& base_where);

  // Adds a document that overrides earlier ones.
  void add(const Override& one) { documents_.push_back({one.source, *one.document, one.may_hold_unused, {}}); }

  // Allows options of unused mechanisms in the documents so far.
  void allow_unused() {
    for (Document& document : documents_) document.may_hold_unused = true;
  }

  // Applies the documents to the experiment.
  void apply();

  // Throws Error for options of a mechanism that no block has. Options are dropped instead if the model had their
  // mechanism until a later document selected another one, or if their document may hold unused options.
  void drop_unused();

  // Throws Error for missing keys without a default, and for keys that do not apply. In a run's recorded file, keys of
  // [data] that do not apply are ignored, since another data set may be selected.
  void require_complete(const std::string& path, bool recorded) const;

  // Sets defaults that depend on other keys.
  void fill_in(const std::string& path, bool recorded);

 private:
  void apply_family(const Document& document);
  void apply(const Source& source, const toml::table& document);
  template <class Config>
  void apply_table(const Source& source, std::string_view table, Config& config, const toml::table& values);

  std::vector<Document> documents_;
};

// Describes a node of the wrong type; for a list with a wrong item, "a string for stage 1" or "a string as item 1".
template <class T>
std::string found_in(const toml::node& node, const T&, const ModelConfig&) {
  return found(node);
}

template <class T>
std::string found_in(const toml::node& node, const std::vector<T>&, const ModelConfig& model) {
  const toml::array* const list = node.as_array();
  T value{};
  for (std::size_t i = 0; list && i < list->size(); ++i)
    if (!assign((*list)[i], value))
      return fmt::format(
          "{} {}", found((*list)[i]),
          model.is_staged() ? fmt::format("for stage {}", model.stage_number(i)) : fmt::format("as item {}", i + 1));
  return found(node);
}

template <class Config>
void Loader::apply_table(const Source& source, std::string_view table, Config& config, const toml::table& values) {
  // Determines the valid keys (see apply_family()), so it is restored after each key.
  const std::string family = experiment.model.family;
  for (const auto& [name, node] : values) {
    const toml::key& key = name;
    const toml::node& value = node;
    const std::string present = present_name(source, table, key, values), full = fmt::format("{}.{}", table, present);
    bool known = false;
    fields(config, [&](std::string_view of, auto& member, const Rule& rule, std::string_view) {
      if (of != present) return;
      known = true;
      require(assign(value, member, rule), "{}: {}: expected {}, found {}", source.at(key), in_quotes(full),
              expected(member, rule), found_in(value, member, experiment.model));
      written[full] = source.at(key);
    });
    experiment.model.family = family;
    if (known) continue;
    if constexpr (std::is_same_v<Config, AttentionConfig>)
      read_option(source, key, value, experiment);
    else if (table == "model" && is_model_key(key.str()))
      fail("{}: [model] {} is not a key of family = {}{}", source.at(key), key.str(), toml_text(family),
           suggestion_of(table, keys_of(experiment.model), key.str()));
    else
      fail("{}: unknown key {}{}", source.at(key), in_quotes(full), key_suggestion(experiment, table, key.str()));
  }
}

void Loader::apply(const Source& source, const toml::table& document) {
  for (const auto& [name, node] : document) {
    const toml::key& key = name;
    const toml::node& value = node;
    bool known = key.str() == "base";
    tables(experiment, [&](std::string_view table, auto& config) {
      if (table != key.str()) return;
      known = true;
      require(value.is_table(), "{}: {}: expected a table, found {}", source.at(key), in_quotes(table), found(value));
      apply_table(source, table, config, *value.as_table());
    });
    if (!known)
      fail("{}: unknown {} {}{}", source.at(key), value.is_table() ? "table" : "key", in_quotes(key.str()),
           key_suggestion(experiment, "", key.str()));
  }
}

// The family of the last document that sets one determines the valid keys of all documents.
void Loader::apply_family(const Document& document) {
  const auto at = document.table.find("model");
  if (at == document.table.end() || !at->second.is_table()) return;
  const toml::table& model = *at->second.as_table();
  const auto family = model.find("family");
  if (family == model.end() || !family->second.is_string()) return;
  const std::string name = experiment.model.family = family->second.as_string()->get();
  std::vector<std::string> known;
  for (const auto& [other, number] : family_names) known.emplace_back(other);
  require(std::find(known.begin(), known.end(), name) != known.end(), "{}: [model] family = {}{}",
          document.source.at(family->first), in_quotes(name), suggestion(name, known));
}

void Loader::apply() {
  for (const Document& document : documents_) apply_family(document);
  for (Document& document : documents_) {
    apply(document.source, document.table);
    document.mechanisms = experiment.attention.mechanism;
  }
}

void Loader::drop_unused() {
  const auto has = [](const std::vector<std::string>& names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::vector<std::string>& used = experiment.attention.mechanism;
  for (const Document& document : documents_)
    for_mechanism_tables(document.table, [&](const toml::key& key) {
      require(document.may_hold_unused || has(document.mechanisms, key.str()) || has(used, key.str()),
              "{}: {}: no block uses this mechanism{}", document.source.at(key),
              in_quotes(fmt::format("attention.{}", key.str())), suggestion(key.str(), used));
    });
  std::erase_if(experiment.attention.per_mechanism, [&](const auto& own) { return !has(used, own.first); });
}

void Loader::require_complete(const std::string& path, bool recorded) const {
  tables(experiment, [&](std::string_view table, const auto& config) {
    std::string missing;
    fields(config, [&](std::string_view key, const auto&, const Rule& rule, std::string_view) {
      const KeyUse use = use_of(config, key, rule);
      const auto at = written.find(fmt::format("{}.{}", table, key));
      const bool absent = at == written.end();
      require(uses_table(experiment, table) || absent, "{}: [{}] is for train.method = {}, not {}",
              absent ? "" : at->second, table, toml_text(std::string(table)), toml_text(experiment.train.method));
      if (use.known && use.required && absent) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", key);
      const bool left_behind = recorded && table == "data" && !absent && at->second.starts_with(path + ':');
      require(use.known || absent || left_behind, "{}: [{}] {} is not a key of {}", absent ? "" : at->second, table,
              key, kind_of(experiment, table));
    });
    require(missing.empty(), "{}: [{}] lacks {}", path, table, missing);
  });
}

void Loader::fill_in(const std::string& path, bool recorded) {
  // Runs before heed 0.3.0 were trained without applying EXIF orientations.
  const auto name = written.find("data.name");
  const bool of_run =
      recorded && experiment.data.name == "folder" && name != written.end() && name->second.starts_with(path + ':');
  if (of_run && !written.contains("data.orientation")) experiment.data.orientation = false;
  if (written.contains("data.augment")) return;
  std::vector<std::string>& augment = experiment.data.augment;
  if (holds_sequences(experiment.data) || experiment.data.name == "scenes") augment.clear();
  // By default, self-supervised training does not augment grey images: mirrored digits are not digits, and grey images
  // have no colours to change.
  if (experiment.self_supervised() && experiment.model.channels == 1) augment.clear();
  if (experiment.self_supervised() && experiment.model.channels == 3)
    augment = {"flip", "jitter", "grey", "blur", "solarise"};
}

void Loader::read(const std::string& path, std::vector<std::string> chain, const toml::node* base,
                  const std::string& base_where) {
  toml::table document = parse_toml_file(path);
  const Source source{path, true};
  std::string where = base_where;
  for (const auto& [key, value] : document)
    if (key.str() == "base" && base == nullptr) {
      base = &value;
      where = source.at(key);
    }
  if (base != nullptr) {
    require(base->is_string(), "{}: 'base': expected a string, found {}", where, found(*base));
    const std::string next = find_base(path, base->as_string()->get());
    require_base(where, next);
    std::error_code error;
    chain.push_back(std::filesystem::canonical(path, error));
    const std::string canonical = std::filesystem::canonical(next, error);
    require(std::find(chain.begin(), chain.end(), canonical) == chain.end(),
            "{}: base {} depends on this file; expected no cycle", where, in_quotes(next));
    read(next, chain, nullptr, "");
  }
  add({source, &document});
}

/// Path of an experiment without a file, as errors name it.
constexpr std::string_view no_file = "--set";

}  // namespace

Loaded load_overridden(const std::string& path, const std::vector<Override>& overrides, const toml::node* base,
                       bool recorded) {
  Loader loader;
  if (path != no_file) loader.read(find_installed(path), {}, base, "--set");
  if (recorded) loader.allow_unused();
  for (const Override& one : overrides) loader.add(one);
  loader.apply();
  loader.drop_unused();
  loader.require_complete(path, recorded);
  loader.fill_in(path, recorded);
  std::string& data = loader.experiment.data.path;
  data = with_plain_parents(data);
  return {std::move(loader.experiment), std::move(loader.written)};
}

static Experiment load_file(const std::string& path, const std::vector<std::string>& sets, bool recorded) {
  std::vector<toml::table> documents;
  for (const std::string& set : sets) documents.push_back(parse_set(set));
  const toml::node* base = nullptr;
  std::vector<Override> overrides;
  for (const toml::table& document : documents) {
    if (const toml::node* node = document.get("base")) base = node;
    overrides.push_back({{"--set", false}, &document});
  }
  Loaded loaded = load_overridden(path, overrides, base, recorded);
  try {
    validate(loaded.experiment);
  } catch (const KeyError& error) {
    const auto at = loaded.written.find(error.key);
    fail("{}: {}", at == loaded.written.end() ? path : at->second, error.what());
  } catch (const Error& error) {
    fail("{}: {}", path, error.what());
  }
  if (!recorded)
    for (const KeyEffect& of : key_effects(loaded))
      if (!of.has_effect) warn(of.line);
  return std::move(loaded.experiment);
}

Experiment load_experiment(const std::string& path, const std::vector<std::string>& sets) {
  return load_file(path, sets, /*recorded=*/false);
}

Experiment load_sets(const std::vector<std::string>& sets) {
  return load_file(std::string(no_file), sets, /*recorded=*/false);
}

Experiment load_recorded(const std::string& path, const std::vector<std::string>& sets) {
  return load_file(path, sets, /*recorded=*/true);
}

}  // namespace heed
