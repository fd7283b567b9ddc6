// Building of experiments from documents, for experiment files and sweeps.
#pragma once

#include "toml_value.h"

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Origin of a document: a file or the command line.
struct Source {
  std::string name;
  bool has_lines;

  std::string at(const toml::key& key) const {
    return has_lines ? fmt::format("{}:{}", name, key.source().begin.line) : name;
  }
};

/// A document whose keys override those of earlier documents.
struct Override {
  Source source;
  const toml::table* document;
  bool may_hold_unused = false;  ///< allows [attention.NAME] of a mechanism that only other cells use
};

/// An experiment with the last source of each key, "table.key": "file.toml:3".
struct Loaded {
  Experiment experiment;
  std::map<std::string, std::string> written;
};

/// Loads the experiment of a file with overrides. `base`, if given, replaces the base that the file names. Each key is
/// checked for its type; validate() checks the ranges. `recorded` marks the file of a run.
Loaded load_overridden(const std::string& path, const std::vector<Override>& overrides,
                       const toml::node* base = nullptr, bool recorded = false);

/// A key or option whose effect depends on other values.
struct KeyEffect {
  std::string key;
  bool has_effect;
  std::string line;  ///< "a.toml:3: optim.momentum = 0.5 has no effect; it needs optim.name = "sgd""
};

/// Returns the effects of keys whose value differs from the default.
std::vector<KeyEffect> key_effects(const Loaded& loaded);

/// Reads a key of [attention] that is not a field: an option, or a mechanism's table of options.
void read_option(const Source& source, const toml::key& key, const toml::node& node, Experiment& experiment);

/// Calls f(key) for each table of options for one mechanism, [attention.NAME], in a document.
template <class F>
void for_mechanism_tables(const toml::table& document, const F& f) {
  const toml::table* const attention = document["attention"].as_table();
  if (attention == nullptr) return;
  for (const auto& [key, node] : *attention)
    if (node.is_table()) f(key);
}

}  // namespace heed
