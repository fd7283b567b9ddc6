#include "heed/config/sweep.h"

#include "load.h"
#include "toml_document.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/installed.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <span>

namespace heed {
namespace {

const Source from_sets{"--set", false};

/// Top-level keys of a sweep; its other keys are tables of settings for all experiments.
const std::vector<std::string> own_keys{"base", "seeds", "arm_files", "arms", "grid"};

/// Returns the keys of a table in file order.
std::vector<toml::key> in_order(const toml::table& table) {
  std::vector<toml::key> keys;
  for (const auto& [key, node] : table) keys.push_back(key);
  const auto place = [](const toml::key& key) {
    const toml::source_position at = key.source().begin;
    return std::pair(at.line, at.column);
  };
  std::stable_sort(keys.begin(), keys.end(), [&](const auto& a, const auto& b) { return place(a) < place(b); });
  return keys;
}

struct Arm {
  std::string name, base;
  std::string where;  ///< location of the base in the file, for errors
};

/// A list of the grid: the values of a key.
struct Axis {
  std::vector<toml::key> path;
  const toml::array* values;

  std::string full_name() const {
    std::string name;
    for (const toml::key& key : path) name += fmt::format("{}{}", name.empty() ? "" : ".", key.str());
    return name;
  }
};

/// Formats a value for the name of an arm.
std::string label_of(const toml::node& value) {
  if (const auto* text = value.as_string()) return text->get();
  if (const auto* whole = value.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = value.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* truth = value.as_boolean()) return truth->get() ? "true" : "false";
  std::string label;
  if (const auto* list = value.as_array())
    for (const toml::node& item : *list) label += (label.empty() ? "" : "+") + label_of(item);
  return label;
}

/// Sets the key at `path` of a document, creating missing tables.
void insert(toml::table& document, std::span<const toml::key> path, const toml::node& value) {
  toml::table* table = &document;
  for (const toml::key& key : path.first(path.size() - 1)) {
    if (!table->contains(key.str())) table->insert(key, toml::table{});
    table = table->get(key.str())->as_table();
  }
  value.visit([&](const auto& node) { table->insert(path.back(), node); });
}

class SweepReader {
 public:
  SweepReader(const std::string& path, const std::vector<std::string>& sets, Index seeds)
      : source_{path, true}, document_(parse_toml_file(path)), common_(document_) {
    for (const std::string& key : own_keys) common_.erase(key);
    for (const auto& [key, node] : common_)
      if (const std::string near = nearest(key.str(), own_keys); !node.is_table() && !near.empty())
        fail("{}: unknown key {}; did you mean '{}'?", source_.at(key), in_quotes(key.str()), near);
    for (const std::string& set : sets) {
      sets_.push_back(parse_set(set));
      require(!sets_.back().contains("base"), "--set {}: the base of a sweep can be set in its file only",
              in_quotes(set));
    }
    read_arms();
    if (const toml::node* grid = document_.get("grid")) read_grid(table_of("grid", *grid), {});
    read_seeds();
    if (seeds > 0) count_seeds(seeds);
  }

  std::vector<SweepCell> cells() const {
    std::size_t count = arms_.size() * std::max<std::size_t>(seeds_.size(), 1);
    for (const Axis& axis : axes_) {
      count *= axis.values->size();
      require(count <= most_cells, "{}: defines {} experiments or more; expected at most {}", source_.name, count,
              most_cells);
    }
    require(count <= most_cells, "{}: defines {} experiments; expected at most {}", source_.name, count, most_cells);
    std::vector<SweepCell> cells;
    std::vector<KeyEffect> effects;
    for (const Arm& arm : arms_) {
      std::vector<std::size_t> place(axes_.size(), 0);
      do add_seeds(cells, effects, arm, place);
      while (advance(place));
    }
    // Warns only about keys that have no effect in any arm.
    std::set<std::string> with_effect;
    for (const KeyEffect& of : effects)
      if (of.has_effect) with_effect.insert(of.key);
    for (const KeyEffect& of : effects)
      if (!with_effect.contains(of.key)) warn(of.line);
    require_used(cells, source_, common_);
    if (const toml::table* const grid = document_["grid"].as_table()) require_used(cells, source_, *grid);
    for (const toml::table& set : sets_) require_used(cells, from_sets, set);
    require_different(cells);
    return cells;
  }

 private:
  std::string where(const char* key) const { return source_.at(document_.find(key)->first); }

  const toml::table& table_of(const std::string& name, const toml::node& node) const {
    require(node.is_table(), "{}: {}: expected a table, found {}", source_.name, in_quotes(name), found(node));
    return *node.as_table();
  }

  std::string text_of(const toml::table& table, const char* key) const {
    const auto at = table.find(key);
    require(at->second.is_string(), "{}: '{}': expected a string, found {}", source_.at(at->first), key,
            found(at->second));
    return at->second.as_string()->get();
  }

  std::string base_of(const toml::table& table) const { return find_base(source_.name, text_of(table, "base")); }

  void read_arms() {
    std::string base, base_where = source_.name;
    if (document_.contains("base")) base = base_of(document_), base_where = where("base");
    if (const toml::node* arms = document_.get("arms")) {
      const toml::table& table = table_of("arms", *arms);
      require(!table.empty(), "{}: [arms] is empty", where("arms"));
      for (const toml::key& key : in_order(table)) {
        const toml::table& own = table_of(fmt::format("arms.{}", key.str()), *table.get(key.str()));
        Arm& arm = arms_.emplace_back(Arm{std::string(key.str()), base, base_where});
        if (own.contains("base")) arm.base = base_of(own), arm.where = source_.at(key);
      }
    }
    if (document_.contains("arm_files")) read_arm_files();
    if (arms_.empty()) arms_.push_back({"", base, base_where});
    for (const Arm& arm : arms_) {
      require(!arm.base.empty(), "{}: 'base' is missing; expected an experiment's file", arm.where);
      require_base(arm.where, arm.base);
    }
  }

  /// Adds an arm for each file of 'arm_files'. The arm may also have a table, whose keys override the file's.
  void read_arm_files() {
    const std::string pattern = text_of(document_, "arm_files");
    const std::filesystem::path folder = std::filesystem::path(pattern).parent_path();
    const std::string names = std::filesystem::path(pattern).filename();
    const std::size_t star = names.find('*');
    require(star != std::string::npos && pattern.find('*') == pattern.rfind('*'),
            "{}: 'arm_files': {}; expected exactly one *, in the file's name", where("arm_files"), in_quotes(pattern));
    const std::string start = names.substr(0, star), end = names.substr(star + 1);
    std::vector<std::filesystem::path> directories = search_places(folder);
    directories.insert(directories.begin(), std::filesystem::path(source_.name).parent_path() / folder);
    std::map<std::string, std::string> files;
    std::error_code error;
    for (auto directory = directories.begin(); directory != directories.end() && files.empty(); ++directory) {
      for (const auto& entry : std::filesystem::directory_iterator(directory->empty() ? "." : *directory, error))
        if (const std::string name = entry.path().filename();
            name.size() > start.size() + end.size() && name.starts_with(start) && name.ends_with(end))
          files[name.substr(star, name.size() - start.size() - end.size())] = *directory / name;
      require(!error || error == std::errc::no_such_file_or_directory, "{}: 'arm_files': {}: cannot read: {}",
              where("arm_files"), directory->string(), error.message());
    }
    require(!files.empty(), "{}: 'arm_files': no file matches {}", where("arm_files"), in_quotes(pattern));
    for (const auto& [name, file] : files) {
      std::erase_if(arms_, [&name = name](const Arm& arm) { return arm.name == name; });
      arms_.push_back({name, file, where("arm_files")});
    }
  }

  void read_grid(const toml::table& table, std::vector<toml::key> path) {
    for (const toml::key& key : in_order(table)) {
      std::vector<toml::key> full = path;
      full.push_back(key);
      const toml::node& node = *table.get(key.str());
      require(!path.empty() || key.str() != "base",
              "{}: 'grid.base': a grid has keys of the experiment; set a base in an arm", source_.at(key));
      if (const toml::table* inner = node.as_table()) {
        read_grid(*inner, full);
        continue;
      }
      const Axis axis{full, node.as_array()};
      require(axis.values != nullptr && !axis.values->empty(),
              "{}: 'grid.{}': expected a list of values for {}, found {}", source_.at(key), axis.full_name(),
              axis.full_name(), axis.values == nullptr ? found(node) : "an empty list");
      axes_.push_back(axis);
    }
  }

  void read_seeds() {
    const toml::node* const node = document_.get("seeds");
    if (node == nullptr) return;
    if (const auto* count = node->as_integer()) {
      const Index most = static_cast<Index>(most_cells);
      require(count->get() >= 1 && count->get() <= most, "{}: 'seeds' = {}; expected 1 to {}", where("seeds"),
              count->get(), most);
      count_seeds(count->get());
      return;
    }
    const toml::array* const list = node->as_array();
    const bool whole = list != nullptr && std::all_of(list->begin(), list->end(), [](const toml::node& item) {
                         return item.is_integer() && item.as_integer()->get() >= 0;
                       });
    require(whole && !list->empty(), "{}: 'seeds': expected a list of seeds or their number, found {}", where("seeds"),
            list == nullptr ? found(*node)
            : list->empty() ? "an empty list"
                            : "another value in the list");
    for (const toml::node& item : *list) seeds_.push_back(item.as_integer()->get());
  }

  void count_seeds(Index count) {
    seeds_.clear();
    for (Index seed = 1; seed <= count; ++seed) seeds_.push_back(seed);
  }

  /// Advances to the next combination, changing the last list fastest; returns false after the last combination.
  bool advance(std::vector<std::size_t>& place) const {
    for (std::size_t i = place.size(); i-- > 0;) {
      if (++place[i] < axes_[i].values->size()) return true;
      place[i] = 0;
    }
    return false;
  }

  /// Returns, for example, "softmax:lr=0.001"; keys that occur in several tables include their table's name.
  std::string name_of(const Arm& arm, const std::vector<std::size_t>& place) const {
    std::string name = arm.name;
    for (std::size_t i = 0; i < axes_.size(); ++i) {
      const std::string_view key = axes_[i].path.back().str();
      const bool alone = std::count_if(axes_.begin(), axes_.end(),
                                       [&](const Axis& axis) { return axis.path.back().str() == key; }) == 1;
      name += fmt::format("{}{}={}", name.empty() ? "" : ":", alone ? std::string(key) : axes_[i].full_name(),
                          label_of((*axes_[i].values)[place[i]]));
    }
    return name.empty() ? std::filesystem::path(source_.name).stem().string() : name;
  }

  void add_seeds(std::vector<SweepCell>& cells, std::vector<KeyEffect>& effects, const Arm& arm,
                 const std::vector<std::size_t>& place) const {
    toml::table combination, own;
    if (const toml::table* const keys = document_["arms"][arm.name].as_table()) own = *keys;
    for (std::size_t i = 0; i < axes_.size(); ++i) insert(combination, axes_[i].path, (*axes_[i].values)[place[i]]);
    std::vector<Override> overrides{{source_, &common_, true}, {source_, &own}, {source_, &combination, true}};
    for (const toml::table& set : sets_) overrides.push_back({from_sets, &set, true});
    const Loaded loaded = load_overridden(arm.base, overrides);
    SweepCell cell{name_of(arm, place), loaded.experiment};
    for (const KeyEffect& of : key_effects(loaded)) effects.push_back(of);
    if (const auto seed = loaded.written.find("train.seed"); !seeds_.empty() && seed != loaded.written.end())
      if (seed->second == from_sets.name || seed->second.starts_with(source_.name + ":"))
        effects.push_back({seed->first, false,
                           fmt::format("{}: train.seed = {} has no effect; it needs a sweep without seeds",
                                       seed->second, cell.seed())});
    const std::vector<Index> seeds = seeds_.empty() ? std::vector{cell.seed()} : seeds_;
    for (const Index seed : seeds) {
      cell.experiment.train.seed = seed;
      try {
        validate(cell.experiment);
      } catch (const Error& error) {
        fail("{}: {}: {}", source_.name, cell.arm, error.what());
      }
      cells.push_back(cell);
    }
  }

  /// Throws Error if a document for all experiments has options of a mechanism that none of them uses.
  void require_used(const std::vector<SweepCell>& cells, const Source& source, const toml::table& document) const {
    for_mechanism_tables(document, [&](const toml::key& key) {
      const bool used = std::any_of(cells.begin(), cells.end(), [&](const SweepCell& cell) {
        const std::vector<std::string>& names = cell.experiment.attention.mechanism;
        return std::find(names.begin(), names.end(), key.str()) != names.end();
      });
      require(used, "{}: {}: no experiment of this sweep uses this mechanism", source.at(key),
              in_quotes(fmt::format("attention.{}", key.str())));
    });
  }

  void require_different(const std::vector<SweepCell>& cells) const {
    std::map<std::string, const SweepCell*> seen;
    for (const SweepCell& cell : cells) {
      const auto [other, added] = seen.try_emplace(to_toml(cell.experiment), &cell);
      require(added, "{}: {}, seed {}, and {}, seed {}, are the same experiment", source_.name, other->second->arm,
              other->second->seed(), cell.arm, cell.seed());
    }
  }

  Source source_;
  toml::table document_, common_;
  std::vector<toml::table> sets_;
  std::vector<Arm> arms_;
  std::vector<Axis> axes_;
  std::vector<Index> seeds_;
};

}  // namespace

std::vector<SweepCell> load_sweep(const std::string& path, const std::vector<std::string>& sets, Index seeds) {
  return SweepReader(find_installed(path), sets, seeds).cells();
}

}  // namespace heed
