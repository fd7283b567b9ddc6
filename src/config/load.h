// Experiments from documents: what experiment files and sweeps share.
#pragma once

#include "toml_value.h"

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
};

/// "optim.lr=1e-3" as the document it stands for. A value that is not TOML is taken as text.
toml::table parse_set(const std::string& set);

/// Where the file or directory is that `file` names: beside it, else by its path, else among the installed ones.
std::string find_base(const std::string& file, const std::string& base);

/// Throws Error, beginning with `where`, if there is no such file.
void require_base(const std::string& where, const std::string& base);

/// The experiment of a file with overrides. `base`, if given, stands in for the file's own. Every key has been checked
/// for itself; whether the values are in their ranges is left to validate().
Experiment load_overridden(const std::string& path, const std::vector<Override>& overrides,
                           const toml::node* base = nullptr);

}  // namespace heed
