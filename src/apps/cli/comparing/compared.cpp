#include "compared.h"

#include "src/apps/cli/training/sweep_cells.h"

#include "heed/base/error.h"
#include "heed/train/runs/data_record.h"

#include <algorithm>
#include <filesystem>
#include <set>

namespace heed::cli {

namespace {

namespace fs = std::filesystem;

bool is_run(const fs::path& directory) {
  const RunPaths paths(directory.string());
  return fs::exists(paths.config()) && fs::exists(paths.metrics());
}

/// Adds the runs below a directory. Symbolic links are followed only to runs. Throws Error for a directory that cannot
/// be read.
void add_runs_below(const fs::path& directory, std::vector<std::string>& found) {
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    if (!entry->is_directory()) continue;
    if (is_run(entry->path())) found.push_back(entry->path().lexically_normal().string());
    if (!entry->is_symlink()) add_runs_below(entry->path(), found);
  }
  require(!error, "{}: cannot read: {}", directory.string(), error.message());
}

std::vector<std::string> runs_below(const std::string& directory) {
  if (is_run(directory)) return {RunPaths(fs::path(directory).lexically_normal().string()).directory};
  std::vector<std::string> found;
  if (fs::is_directory(directory)) add_runs_below(directory, found);
  require(!found.empty(), "{}: contains no run; expected a directory written by heed train or heed sweep", directory);
  std::ranges::sort(found);
  return found;
}

/// Renames arms of the same name, for example from two sweeps: each is named after the directory of its first run.
void name_apart(std::vector<ComparedArm>& arms) {
  std::map<std::string, int> count;
  for (const ComparedArm& arm : arms) ++count[arm.name];
  for (ComparedArm& arm : arms)
    if (count[arm.name] > 1) arm.name = arm.runs.front().directory;
}

void require_seeds_apart(const ComparedArm& arm) {
  for (std::size_t i = 0; i < arm.runs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      require(arm.runs[i].seed() != arm.runs[j].seed(), "{} and {} have the same configuration and seed; give only one",
              arm.runs[j].directory, arm.runs[i].directory);
}

/// Returns data_text() of each arm relative to the first arm with a record, and "-" for an arm without one. Empty if
/// all recorded data are the same.
std::vector<std::string> differing_data(const std::vector<ComparedArm>& arms) {
  std::set<std::string> hashes;
  std::vector<const ComparedRun*> recorded;  // for each arm, a run with a record, or null
  for (const ComparedArm& arm : arms) {
    const auto run = std::ranges::find_if(arm.runs, [](const ComparedRun& of) { return !of.data.empty(); });
    recorded.push_back(run == arm.runs.end() ? nullptr : &*run);
    if (recorded.back()) hashes.insert(run->data);
  }
  if (hashes.size() < 2) return {};
  std::optional<DataRecord> first;
  std::vector<std::string> texts;
  for (const ComparedRun* const run : recorded) {
    const std::optional<DataRecord> record = run ? read_data_record(RunPaths(run->directory)) : std::nullopt;
    if (!first) first = record;
    texts.push_back(record ? data_text(*record, *first) : "-");
  }
  return texts;
}

}  // namespace

std::string ComparedArm::own_name() const {
  const std::string& first = runs.front().directory;
  const std::string arm = arm_of(first);
  return arm.empty() ? fs::path(first).filename().string() : arm;
}

TableArm ComparedArm::table() const {
  TableArm arm{name, {}};
  for (const ComparedRun& run : runs) {
    const RunPaths paths(run.directory);
    const std::string divergence = divergence_of(run.directory);
    const char* const state = run.history.finished ? "finished" : divergence.empty() ? "not finished" : "diverged";
    arm.runs.push_back({run.directory, run.seed(), state, divergence, configuration_hash(run.experiment),
                        version_of(paths), read_figures(paths, run.experiment.train.batch)});
  }
  return arm;
}

std::vector<ComparedArm> find_arms(const std::vector<std::string>& directories) {
  std::vector<std::pair<std::string, ComparedRun>> runs;  // each with its settings
  std::map<std::string, std::set<std::string>> recorded;  // hashes of the data, by settings
  std::set<std::string> seen;
  for (const std::string& given : directories)
    for (const std::string& directory : runs_below(given)) {
      if (!seen.insert(directory).second) continue;
      const RunPaths paths(directory);
      ComparedRun run{directory, load_recorded(paths.config()), read_history(paths), data_hash(paths)};
      Experiment without_seed = result_settings(run.experiment);
      without_seed.train.seed = 0;
      const std::string settings = to_toml(without_seed);
      if (!run.data.empty()) recorded[settings].insert(run.data);
      runs.emplace_back(settings, std::move(run));
    }
  std::vector<ComparedArm> arms;
  std::map<std::pair<std::string, std::string>, std::size_t> places;  // indices of arms, by settings and data
  for (auto& [settings, run] : runs) {
    const std::set<std::string>& hashes = recorded[settings];
    const std::string& data = run.data.empty() && hashes.size() == 1 ? *hashes.begin() : run.data;
    const auto [place, added] = places.try_emplace({settings, data}, arms.size());
    if (added) arms.emplace_back();
    arms[place->second].runs.push_back(std::move(run));
  }
  for (ComparedArm& arm : arms) arm.name = arm.own_name();
  for (const ComparedArm& arm : arms) require_seeds_apart(arm);
  name_apart(arms);
  return arms;
}

std::map<std::string, std::vector<std::string>> differing_settings(const std::vector<ComparedArm>& arms) {
  std::map<std::string, std::vector<std::string>> all;
  for (std::size_t i = 0; i < arms.size(); ++i)
    for (const auto& [key, value] : settings_of(result_settings(arms[i].runs.front().experiment))) {
      std::vector<std::string>& values = all[key];
      values.resize(arms.size(), "-");
      values[i] = value;
    }
  std::erase_if(all, [](const auto& setting) {
    const auto& [key, values] = setting;
    return key == "train.seed" || std::ranges::adjacent_find(values, std::not_equal_to<>()) == values.end();
  });
  if (std::vector<std::string> data = differing_data(arms); !data.empty()) all["data"] = std::move(data);
  return all;
}

std::vector<TableArm> tables_of(const std::vector<ComparedArm>& arms) {
  std::vector<TableArm> tables;
  for (const ComparedArm& arm : arms) tables.push_back(arm.table());
  return tables;
}

Json compared_json(const std::vector<ComparedArm>& arms) {
  Json json = arms_json(tables_of(arms));
  Json& settings = json["settings"] = Json::object();
  for (const auto& [key, values] : differing_settings(arms)) settings[key] = Json(values);
  return json;
}

std::vector<Sample> samples_of(const ComparedArm& arm, const CurveName& curve) {
  std::size_t epochs = 0;
  for (const ComparedRun& run : arm.runs) epochs = std::max(epochs, run.history.epochs.size());
  std::vector<std::vector<double>> values(epochs);
  for (const ComparedRun& run : arm.runs)
    for (const EpochRecord& record : run.history.epochs)
      if (record.*curve.value && record.epoch <= static_cast<Index>(epochs))
        values[static_cast<std::size_t>(record.epoch - 1)].push_back(*(record.*curve.value));
  std::vector<Sample> samples;
  for (const std::vector<double>& one : values) samples.push_back(sample_of(one));
  return samples;
}

}  // namespace heed::cli
