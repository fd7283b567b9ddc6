#include "heed/config/energy_table.h"

#include "toml_document.h"
#include "heed/base/suggest.h"
#include "heed/config/installed.h"

#include <algorithm>
#include <cmath>

namespace heed {

namespace {

/// Reads one table file; errors name it and the line.
class Reader {
 public:
  explicit Reader(const std::string& path) : path_(path), document_(parse_toml_file(path)) {}

  EnergyTable read() {
    EnergyTable table;
    for (const auto& [key, node] : document_) {
      if (key.str() == "name")
        require(assign(node, table.name), "{}: 'name': expected a string, found {}", at(key), found(node));
      else if (key.str() == "number_bytes")
        require(assign(node, table.number_bytes) && table.number_bytes >= 1 && table.number_bytes <= 16,
                "{}: 'number_bytes': expected an integer from 1 to 16", at(key));
      else if (key.str() == "operations")
        table.operations = figures(key, node, kinds());
      else if (key.str() == "memory")
        table.memory = figures(key, node, {});
      else
        fail("{}: unknown key {}{}", at(key), in_quotes(key.str()),
             suggestion(key.str(), {"name", "number_bytes", "operations", "memory"}));
    }
    require(!table.name.empty(), "{}: 'name' is missing", path_);
    require(!table.operations.empty(), "{}: [operations] has no energies", path_);
    return table;
  }

 private:
  static std::vector<std::string> kinds() {
    std::vector<std::string> names;
    for (const CountKind& kind : count_kinds) names.emplace_back(kind.name);
    return names;
  }

  std::string at(const toml::key& key) const { return fmt::format("{}:{}", path_, key.source().begin.line); }

  /// Returns the figures of a table. Throws Error for a name that is not in `known`, unless `known` is empty.
  std::vector<EnergyFigure> figures(const toml::key& table, const toml::node& node,
                                    const std::vector<std::string>& known) const {
    require(node.is_table(), "{}: {}: expected a table, found {}", at(table), in_quotes(table.str()), found(node));
    std::vector<EnergyFigure> list;
    for (const auto& [key, value] : *node.as_table()) {
      const std::string name(key.str());
      require(known.empty() || std::find(known.begin(), known.end(), name) != known.end(), "{}: unknown operation {}{}",
              at(key), in_quotes(name), suggestion(name, known));
      list.push_back(figure(key, value));
    }
    return list;
  }

  EnergyFigure figure(const toml::key& key, const toml::node& node) const {
    const toml::table* const values = node.as_table();
    require(values != nullptr, "{}: {}: expected {{ pj = NUMBER, source = \"...\" }}, found {}", at(key),
            in_quotes(key.str()), found(node));
    EnergyFigure figure{std::string(key.str()), -1, ""};
    for (const auto& [name, value] : *values) {
      const bool good = name.str() == "pj"       ? assign(value, figure.pj)
                        : name.str() == "source" ? assign(value, figure.source)
                                                 : false;
      require(good, "{}: {}: unknown key or bad value {}; expected pj, a number, and source, a string", at(key),
              in_quotes(key.str()), in_quotes(name.str()));
    }
    require(std::isfinite(figure.pj) && figure.pj >= 0, "{}: {}: pj is {}; expected a number of at least 0", at(key),
            in_quotes(key.str()), values->contains("pj") ? fmt::format("{}", figure.pj) : "missing");
    require(!figure.source.empty(), "{}: {}: source is missing; expected one for every figure", at(key),
            in_quotes(key.str()));
    return figure;
  }

  std::string path_;
  toml::table document_;
};

}  // namespace

EnergyTable load_energy_table(const std::string& path) { return Reader(find_installed(path)).read(); }

}  // namespace heed
