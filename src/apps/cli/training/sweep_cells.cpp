#include "sweep_cells.h"

#include "heed/base/error.h"
#include "heed/base/suggest.h"
#include "heed/train/runs/data_record.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

std::string cell_file(const std::string& directory) { return directory + "/cell.json"; }

/// Fields that are read from cell.json, which cell_json() and record_divergence() write.
struct CellRecord {
  std::string arm, hash, version, diverged;  ///< arm and diverged may be missing
};

CellRecord read_cell_file(const std::string& directory) {
  try {
    return take_json(cell_file(directory), [](const Json& json) {
      CellRecord cell{"", json.at("hash").text(), json.at("version").text(), ""};
      if (json.contains("arm")) cell.arm = json.at("arm").text();
      if (json.contains("diverged")) cell.diverged = json.at("diverged").text();
      return cell;
    });
  } catch (const Error& error) {
    fail("{}; remove {} to train the cell again", error.what(), directory);
  }
}

Json cell_json(const Cell& cell) {
  return Json::object({{"arm", cell.arm},
                       {"seed", cell.experiment.train.seed},
                       {"hash", configuration_hash(cell.experiment)},
                       {"version", HEED_VERSION}});
}

/// Returns an arm's name as a directory name of at most 120 characters: a leading '.' and all characters except
/// letters, digits and "+-._=:" become '_'.
std::string directory_name(std::string name) {
  constexpr std::size_t longest = 120;
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && std::string_view("+-._=:").find(c) == std::string_view::npos)
      c = '_';
  if (name.starts_with('.')) name[0] = '_';
  return name.substr(0, longest);
}

/// Returns the first setting in which a cell differs from a file in its directory; empty if there is none, as when only
/// the hash differs because a new version has added keys.
std::string change(const Cell& cell, const std::string& file, const char* done) {
  const std::map<std::string, std::string> now = settings_of(result_settings(cell.experiment)),
                                           before = settings_of(result_settings(load_recorded(file)));
  const auto value = [](const std::map<std::string, std::string>& settings, const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? "(nothing)" : found->second;
  };
  std::map<std::string, std::string> all = before;
  all.insert(now.begin(), now.end());
  for (const auto& [key, either] : all)
    if (value(before, key) != value(now, key))
      return fmt::format("{} with {} = {}, not {}", done, key, value(before, key), value(now, key));
  return "";
}

/// Returns why the run in a cell's directory cannot be used for the cell; empty if it can.
std::string obstacle(const Cell& cell, bool has_run) {
  if (!fs::exists(cell_file(cell.directory))) return has_run ? "contains a run that this sweep did not start" : "";
  const CellRecord before = read_cell_file(cell.directory);
  if (before.hash != configuration_hash(cell.experiment))
    if (const std::string changed = change(cell, cell.file(), "was started"); !changed.empty()) return changed;
  if (has_run && fs::exists(cell.paths().config()))
    if (const std::string changed = change(cell, cell.paths().config(), "was continued"); !changed.empty())
      return changed;
  const bool resumable = before.version == HEED_VERSION || !has_run || read_history(cell.paths()).finished;
  return resumable ? "" : fmt::format("was started by heed {}; heed " HEED_VERSION " cannot resume it", before.version);
}

/// Returns true if runs of two experiments have the same record of the data, that is, the same classes and files,
/// provided that the data do not change between the runs.
bool share_data(const Experiment& a, const Experiment& b) {
  const auto keys = [](const Experiment& x) {
    return std::tie(x.data.name, x.data.path, x.data.source, x.data.skip_bad, x.data.header, x.model.task);
  };
  return keys(a) == keys(b);
}

/// Returns the present data of an experiment; none if they cannot be opened, an error that training reports.
std::optional<DataRecord> present_data(const Experiment& experiment) {
  try {
    return describe_data_now(experiment);
  } catch (const Error&) {
    return std::nullopt;
  }
}

/// Implements mark_changed_data() for cells that share their data.
void mark_changed(const std::vector<Cell*>& cells, bool now) {
  std::vector<std::pair<Cell*, std::string>> runs;  // cells with a data record, each with its data hash
  for (Cell* const cell : cells)
    if (cell->state == CellState::begun || cell->state == CellState::finished || cell->state == CellState::diverged)
      if (std::string hash = data_hash(cell->paths()); !hash.empty()) runs.emplace_back(cell, std::move(hash));
  if (runs.empty()) return;
  const Cell& first = *runs[0].first;
  const std::optional<DataRecord> expected = now ? present_data(first.experiment) : read_data_record(first.paths());
  if (!expected) return;  // training reports the error
  const std::string where = now ? "now at " + expected->path : "of " + first.directory;
  const std::string right = data_hash(*expected);
  for (const auto& [cell, hash] : runs) {
    if (hash == right) continue;
    cell->state = CellState::changed;
    cell->note = fmt::format("was started with different data; the data {} differ: {}", where,
                             data_difference(*read_data_record(cell->paths()), *expected));
  }
}

const char* name_of(CellState state) {
  constexpr const char* names[] = {"not started", "not finished", "finished", "diverged", "failed", "changed"};
  return names[static_cast<std::size_t>(state)];
}

TableRun table_run(const Cell& cell) {
  TableRun run{cell.directory, cell.experiment.train.seed, name_of(cell.state), cell.note, "", "", {}};
  run.hash = configuration_hash(cell.experiment);
  run.version = version_of(cell.paths());
  if (cell.state == CellState::finished) run.figures = read_figures(cell.paths(), cell.experiment.train.batch);
  return run;
}

}  // namespace

std::vector<Cell> find_cells(const std::vector<SweepCell>& sweep, const std::string& out) {
  std::vector<Cell> cells;
  std::map<std::string, std::string> owners;
  for (const SweepCell& one : sweep) {
    Cell cell{one.arm, one.experiment, "", CellState::open, ""};
    cell.directory = fmt::format("{}/{}/seed-{}", out, directory_name(one.arm), one.seed());
    const auto [owner, added] = owners.try_emplace(cell.directory, cell.arm);
    require(added, "{}: the cells {} and {} of one seed have the same directory; rename an arm", cell.directory,
            in_quotes(owner->second), in_quotes(cell.arm));
    read_state(cell);
    cells.push_back(std::move(cell));
  }
  return cells;
}

void read_state(Cell& cell) {
  const bool has_run = cell.paths().exists();
  cell.note = obstacle(cell, has_run);
  cell.state = !cell.note.empty() ? CellState::changed : has_run ? CellState::begun : CellState::open;
  if (cell.state == CellState::changed || !fs::exists(cell_file(cell.directory))) return;
  if (has_run && read_history(cell.paths()).finished) cell.state = CellState::finished;
  cell.note = divergence_of(cell.directory);
  if (!cell.note.empty()) cell.state = CellState::diverged;
}

void mark_changed_data(std::vector<Cell>& cells, bool now) {
  std::vector<std::vector<Cell*>> groups;
  for (Cell& cell : cells) {
    const auto group = std::ranges::find_if(
        groups, [&](const std::vector<Cell*>& of) { return share_data(of[0]->experiment, cell.experiment); });
    if (group == groups.end())
      groups.push_back({&cell});
    else
      group->push_back(&cell);
  }
  for (const std::vector<Cell*>& group : groups) mark_changed(group, now);
}

void prepare(const Cell& cell) {
  make_directory(cell.directory);
  for (const std::string& file : {cell.file(), cell_file(cell.directory)}) remove_leftovers(file);
  write_file(cell.file(), config_toml(cell.experiment));
  write_file(cell_file(cell.directory), cell_json(cell).dump(2) + "\n");
}

void record_divergence(const Cell& cell, const std::string& message) {
  Json json = cell_json(cell);
  json["diverged"] = message;
  write_file(cell_file(cell.directory), json.dump(2) + "\n");
}

bool is_of_sweep(const Cell& cell) { return fs::exists(cell_file(cell.directory)); }

void forget(Cell& cell) {
  HEED_ASSERT(is_of_sweep(cell));
  std::error_code error;
  fs::remove_all(cell.directory, error);
  require(!error, "{}: cannot be removed: {}", cell.directory, error.message());
  cell.state = CellState::open;
  cell.note.clear();
}

std::string arm_of(const std::string& directory) {
  return fs::exists(cell_file(directory)) ? read_cell_file(directory).arm : "";
}

std::string divergence_of(const std::string& directory) {
  return fs::exists(cell_file(directory)) ? read_cell_file(directory).diverged : "";
}

std::vector<TableArm> arms_of(const std::vector<Cell>& cells) {
  std::vector<TableArm> arms;
  for (const Cell& cell : cells) {
    if (arms.empty() || arms.back().name != cell.arm) arms.push_back({cell.arm, {}});
    arms.back().runs.push_back(table_run(cell));
  }
  return arms;
}

}  // namespace heed::cli
