// Experiments from documents: what experiment files and sweeps share.
#pragma once

#include "toml_value.h"

#include <map>
#include <string>
#include <vector>

namespace heed {

/// Where a document comes from: a file, or the command line.
struct Source {
  std::string name;
  bool has_lines;

  std::string at(const toml::key& key) const {
    return has_lines ? fmt::format("{}:{}", name, key.source().begin.line) : name;
  }
};

/// A document whose keys override those of documents before it.
struct Override {
  Source source;
  const toml::table* document;
  bool may_hold_unused = false;  ///< [attention.NAME] though no block has that mechanism: it may be for others
};

/// An experiment, and where each key, "table.key", was written last: "file.toml:3".
struct Loaded {
  Experiment experiment;
  std::map<std::string, std::string> written;
};

/// The experiment of a file with overrides. `base`, if given, stands in for the file's own. Every key has been read as
/// its type; whether the values are in their ranges is left to validate(). The file of a run is recorded.
Loaded load_overridden(const std::string& path, const std::vector<Override>& overrides,
                       const toml::node* base = nullptr, bool recorded = false);

/// A key or option that is written and changes nothing unless others have certain values.
struct KeyEffect {
  std::string key;
  bool has_effect;
  std::string line;  ///< "a.toml:3: optim.momentum = 0.5 has no effect; it needs optim.name = "sgd""
};

/// Returns those of an experiment that have another value than their default.
std::vector<KeyEffect> key_effects(const Loaded& loaded);

/// Reads a key of [attention] that is not a field: an option, or the table of one mechanism's options.
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
