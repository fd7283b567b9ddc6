#include "heed/train/runs/run.h"

#include "heed/train/runs/commit.h"
#include "table_rows.h"

#include "heed/attention/plugin.h"
#include "heed/io/file.h"
#include "heed/io/json.h"
#include "heed/kernels/products/gemm.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"
#include "heed/base/subnormals.h"
#include "heed/base/suggest.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>

namespace heed {

namespace {

/// Prefix of the names of a run's plugin copies.
constexpr const char* plugin_copy_prefix = "plugin-";

std::string cpu_name() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);)
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  return "unknown CPU";
}

[[noreturn]] void refuse_missing(const std::string& path, const char* what, Index number) {
  fail("{}: the row of {} {} is missing: the file was changed; start another run from its weights (--init)", path, what,
       number);
}

/// Throws Error unless the epoch or step `found` is the successor of `before`.
void require_next(const std::string& path, const char* what, Index before, Index found) {
  if (found != before + 1) refuse_missing(path, what, before + 1);
}

}  // namespace

bool RunPaths::exists() const {
  // Rows in metrics.csv prove that there was a checkpoint: before the first one, the file has at most its header.
  std::error_code none;
  const std::uintmax_t rows = std::filesystem::file_size(metrics(), none);
  return std::filesystem::exists(last()) || std::filesystem::exists(best()) ||
         (!none && rows > std::strlen(metrics_header) + 1);
}

std::string RunPaths::weights() const { return std::filesystem::exists(best()) ? best() : last(); }

std::vector<std::string> RunPaths::files() const {
  return {config(), data(), environment(), init(), plugins(), cost(), metrics(), gradients(), last(), best()};
}

std::vector<std::filesystem::path> RunPaths::plugin_copies() const {
  std::vector<std::filesystem::path> copies;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(directory, none))
    if (entry.path().filename().string().starts_with(plugin_copy_prefix)) copies.push_back(entry.path());
  return copies;
}

void RunPaths::remove_leftovers() const {
  for (const std::string& file : files()) heed::remove_leftovers(file);
  for (std::filesystem::path copy : plugin_copies())  // NAME, or NAME.PID.part
    if (copy.extension() == ".part") heed::remove_leftovers(copy.replace_extension().replace_extension());
}

void RunPaths::remove() const {
  std::error_code none;
  for (const std::filesystem::path& copy : plugin_copies()) std::filesystem::remove(copy, none);
  for (const std::string& file : files()) std::filesystem::remove(file, none);
  std::filesystem::remove(directory, none);  // fails unless empty
}

void add_version(SafetensorsWriter& file) { file.metadata("heed.version", HEED_VERSION); }

void check_same_version(const RunPaths& paths) {
  const SafetensorsFile last(paths.last());
  const auto found = last.metadata().find("heed.version");
  const std::string version = found == last.metadata().end() ? "0.1.0" : found->second;  // not recorded by 0.1.0
  require(version == HEED_VERSION,
          "{}: written by heed {}; heed {} can evaluate it or start another run from it (--init), but not resume it",
          paths.last(), version, HEED_VERSION);
}

PositionRows position_rows(const RunPaths& paths) {
  const ModelConfig model = load_recorded(paths.config()).model;
  if (family_called(model.family) != vit) return {};
  return {model.embed_prefix ? model.prefix_tokens() : 0, model.grid().height, model.grid().width};
}

namespace {

/// Returns the experiment with defaults for all settings that a resumed run may change.
Experiment fixed_settings(const Experiment& experiment) {
  Experiment x = result_settings(experiment);
  const TrainConfig any;
  x.train.epochs = any.epochs;
  // Initial weights are not read again.
  x.train.init = any.init;
  x.train.init_head = any.init_head;
  x.train.init_positions = any.init_positions;
  x.train.init_skip = any.init_skip;
  x.train.init_parts = any.init_parts;
  x.train.init_mechanism = any.init_mechanism;
  return x;
}

}  // namespace

std::string hash_to_resume(const Experiment& experiment) { return configuration_hash(fixed_settings(experiment)); }

Experiment check_same_experiment(const RunPaths& paths, const Experiment& experiment) {
  const Experiment recorded = load_recorded(paths.config());
  if (fixed_settings(experiment) == fixed_settings(recorded)) return recorded;
  std::map<std::string, std::string> before = settings_of(fixed_settings(recorded)),
                                     now = settings_of(fixed_settings(experiment));
  for (const auto& [key, value] : now) before.try_emplace(key, "(nothing)");
  for (const auto& [key, value] : before) {
    const std::string& asked = now.try_emplace(key, "(nothing)").first->second;
    require(value == asked, "{}: the run was started with {} = {}, not {}; a resumed run keeps its configuration",
            paths.config(), key, value, asked);
  }
  fail("{}: the run was started with a different configuration; a resumed run keeps its own", paths.config());
}

/// Returns the names of the copies of the experiment's plugins in the run's directory, by the plugin's file. A plugin
/// loaded from the directory is its own copy. Plugins with equal names get different ones.
static std::map<std::string, std::string> plugin_copy_names(const RunPaths& paths, const Experiment& experiment) {
  std::map<std::string, std::string> copies;
  std::set<std::string> taken;
  for (const std::string& name : experiment.attention.mechanism) {
    const PluginOrigin* const plugin = plugin_of(name);
    if (plugin == nullptr || copies.contains(plugin->file)) continue;
    const std::filesystem::path file(plugin->file), own = file.filename();
    std::error_code none;
    const bool is_copy = own.string().starts_with(plugin_copy_prefix) &&
                         std::filesystem::equivalent(file.parent_path(), paths.directory, none);
    std::string copy = is_copy ? own.string() : plugin_copy_prefix + own.string();
    for (int i = 2; !taken.insert(copy).second; ++i)
      copy = fmt::format("{}{}-{}{}", plugin_copy_prefix, own.stem().string(), i, own.extension().string());
    copies[plugin->file] = copy;
  }
  return copies;
}

std::string plugins_json(const RunPaths& paths, const Experiment& experiment) {
  const std::map<std::string, std::string> copies = plugin_copy_names(paths, experiment);
  Json json = Json::object();
  for (const std::string& name : experiment.attention.mechanism)
    if (const PluginOrigin* const plugin = plugin_of(name))
      json[name] =
          Json::object({{"file", plugin->file}, {"checksum", plugin->checksum}, {"copy", copies.at(plugin->file)}});
  return json.entries().empty() ? "" : json.dump(2) + "\n";
}

namespace {

struct RecordedPlugin {
  std::string mechanism, file, checksum, copy;
};

/// Returns the mechanisms in a run's plugins.json.
std::vector<RecordedPlugin> recorded_plugins(const RunPaths& paths) {
  if (!std::filesystem::exists(paths.plugins())) return {};
  return take_json(paths.plugins(), [](const Json& json) {
    std::vector<RecordedPlugin> all;
    for (const auto& [name, plugin] : json.entries())
      all.push_back({name, plugin.at("file").text(), plugin.at("checksum").text(),
                     plugin.contains("copy") ? plugin.at("copy").text() : ""});
    return all;
  });
}

}  // namespace

void copy_plugins(AtomicFiles& files, const RunPaths& paths, const Experiment& experiment) {
  for (const auto& [file, name] : plugin_copy_names(paths, experiment)) {
    const std::string copy = paths.directory + "/" + name;
    std::error_code none;
    if (!std::filesystem::equivalent(file, copy, none)) files.write(copy, read_file(file));
  }
}

void check_plugins(const RunPaths& paths) {
  for (const auto& [name, file, checksum, copy] : recorded_plugins(paths)) {
    const std::string own = paths.directory + "/" + copy;
    require(std::any_of(mechanisms().begin(), mechanisms().end(),
                        [&name = name](const MechanismEntry& entry) { return entry.name == name; }),
            "{}: mechanism '{}' of the run is from a plugin that is not loaded; add --plugin {}", paths.directory, name,
            shell_word(!copy.empty() && std::filesystem::exists(own) ? own : file));
  }
}

std::string changed_plugin(const RunPaths& paths, const Experiment& experiment) {
  const std::vector<RecordedPlugin> plugins = recorded_plugins(paths);
  for (const std::string& name : experiment.attention.mechanism) {
    const auto before =
        std::find_if(plugins.begin(), plugins.end(), [&](const RecordedPlugin& p) { return p.mechanism == name; });
    const PluginOrigin* const now = plugin_of(name);
    std::string how;
    if (before == plugins.end())
      how = now ? "it was built in and is now from the plugin " + now->file : "";
    else if (!now)
      how = "it was from the plugin " + before->file + " and is now built in";
    else if (now->checksum != before->checksum)
      how = "the run was started with a different build of " + before->file;
    if (!how.empty()) return fmt::format("{}: mechanism '{}' of the run has changed: {}", paths.directory, name, how);
  }
  return "";
}

std::string config_toml(const Experiment& experiment) { return "# heed " HEED_VERSION "\n" + to_toml(experiment); }

std::string environment_json() {
  Json json;
  json["version"] = HEED_VERSION;
  if (*source_commit() != '\0') json["commit"] = source_commit();
  json["date"] = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::chrono::system_clock::now()));
  json["compiler"] = "g++ " __VERSION__;
  json["arch"] = built_for();
  json["cpu"] = cpu_name();
  json["blas"] = kernels::gemm_library();
  json["threads"] = threads();
  json["threads_reason"] = threads_reason();
  json["subnormals"] = flushes_subnormals() ? "zero" : "kept";
  return json.dump(2) + "\n";
}

std::string environment_line() {
  return fmt::format("{}, {}, {}", cpu_name(), counted(threads(), "thread"), kernels::gemm_library());
}

namespace {

/// Rows of a table that a resumed run continues.
struct KeptRows {
  std::string text;          ///< header and rows
  std::vector<Index> steps;  ///< the logged steps
};

KeptRows kept_rows(const std::string& path, const char* header, const MetricsSoFar& so_far) {
  KeptRows kept{fmt::format("{}\n", header), {}};
  Index epochs = 0, validated = 0;
  for_each_row(path, header, [&](const TableRow& row) {
    if (row.kind == "test" || row.epoch > so_far.epochs + (row.kind == "step") || row.step > so_far.steps) return;
    if (row.kind == "train") require_next(path, "epoch", epochs, row.epoch), epochs = row.epoch;
    if (row.kind == "valid" && so_far.validated)
      require_next(path, "validation", validated, row.epoch), validated = row.epoch;
    if (row.kind == "step") kept.steps.push_back(row.step);
    kept.text += row.line + "\n";
  });
  if (epochs < so_far.epochs) require_next(path, "epoch", epochs, so_far.epochs + 1);
  if (so_far.validated && validated < so_far.epochs) require_next(path, "validation", validated, so_far.epochs + 1);
  return kept;
}

/// Appends a row with these values; negative ones become empty fields. Called in training steps, so the buffer is on
/// the stack to avoid allocations.
void append(AppendedFile& file, const MetricsRow& row, std::initializer_list<double> values) {
  fmt::memory_buffer text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "{},{},{}", row.kind, row.epoch, row.step);
  for (const double value : values) value >= 0 ? fmt::format_to(out, ",{}", value) : fmt::format_to(out, ",");
  text.push_back('\n');
  file.append({text.data(), text.size()});
}

/// Writes metrics.csv and gradients.csv, replacing existing ones only after both are written, and returns `paths`.
const RunPaths& write_tables(const RunPaths& paths, const std::string& metrics, const std::string& gradients) {
  AtomicFiles files;
  files.write(paths.metrics(), metrics);
  files.write(paths.gradients(), gradients);
  files.commit();
  return paths;
}

/// Drops the rows of the test and those written after the checkpoint, and returns `paths`. Any steps may be logged,
/// since each resumption may change train.log_steps, but both tables must have the same steps.
const RunPaths& truncate_tables(const RunPaths& paths, const MetricsSoFar& so_far) {
  const KeptRows metrics = kept_rows(paths.metrics(), metrics_header, so_far);
  const KeptRows gradients = kept_rows(paths.gradients(), gradients_header, {so_far.epochs, so_far.steps, false});
  const auto [own, other] =
      std::mismatch(metrics.steps.begin(), metrics.steps.end(), gradients.steps.begin(), gradients.steps.end());
  if (other != gradients.steps.end() && (own == metrics.steps.end() || *other < *own))
    refuse_missing(paths.metrics(), "step", *other);
  if (own != metrics.steps.end()) refuse_missing(paths.gradients(), "step", *own);
  return write_tables(paths, metrics.text, gradients.text);
}

}  // namespace

MetricsFile::MetricsFile(const RunPaths& paths)
    : metrics_(
          write_tables(paths, fmt::format("{}\n", metrics_header), fmt::format("{}\n", gradients_header)).metrics()),
      gradients_(paths.gradients()) {}

MetricsFile::MetricsFile(const RunPaths& paths, const MetricsSoFar& so_far)
    : metrics_(truncate_tables(paths, so_far).metrics()), gradients_(paths.gradients()) {}

void MetricsFile::write(const MetricsRow& row) {
  append(metrics_, row, {row.loss, row.accuracy, row.lr, row.images_per_s});
  const std::string_view kind = row.kind;
  if (kind == "step" || kind == "train") append(gradients_, row, {row.gradient_norm});
}

void MetricsFile::sync() {
  metrics_.sync();
  gradients_.sync();
}

}  // namespace heed
