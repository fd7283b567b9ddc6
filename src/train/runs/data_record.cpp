#include "heed/train/runs/data_record.h"

#include "heed/base/suggest.h"
#include "heed/io/checksum.h"
#include "heed/io/json.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Returns a file's path relative to the data's path; its name if the data are that single file.
std::string name_below(const fs::path& path, const std::string& file) {
  const fs::path below = fs::absolute(file).lexically_normal().lexically_relative(path);
  return below == "." ? path.filename().string() : below.string();
}

/// Returns the image data set that the data are or derive from; empty for texts.
std::string images_of(const DataConfig& data) {
  if (data.name == "scenes" || data.name == "pixels") return data.source;
  return holds_sequences(data) ? "" : data.name;
}

/// Returns the directory or file of the data, absolute.
fs::path place_of(const DataConfig& data) {
  const std::string images = images_of(data);
  const fs::path place = images.empty() ? fs::path(data.path) : dataset_directory(images, data.path, Split::train);
  fs::path absolute = fs::absolute(place).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

/// Returns true if the images are in a default directory. Texts and folders have none.
bool is_in_usual_place(const DataConfig& data) {
  const std::string images = images_of(data);
  if (images.empty() || images == "folder") return false;
  try {
    dataset_directory(images, "", Split::test);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// Appends, for example, "2 added (a, b)", naming at most three; nothing if there are none.
void add_change(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", names.size(), what, first_names(names, 3));
}

}  // namespace

DataRecord describe_data(const DataConfig& data, const DataFacts& facts) {
  // The path is empty for data without files.
  const fs::path path = facts.files.empty() ? fs::path() : place_of(data);
  DataRecord record{data.name, data.source, path, {facts.classes, {}, {}}, facts.background};
  for (const std::string& file : facts.validation) record.recorded.validation.push_back(name_below(path, file));
  for (const std::string& file : facts.files) record.recorded.files[name_below(path, file)] = file_checksum(file);
  return record;
}

std::string data_json(const DataRecord& record) {
  Json files = Json::object();
  for (const auto& [name, checksum] : record.recorded.files) files[name] = checksum;
  return Json::object({{"name", record.name},
                       {"source", record.source},
                       {"path", record.path},
                       {"classes", record.recorded.classes},
                       {"background", record.background ? Json(*record.background) : Json()},
                       {"validation", record.recorded.validation},
                       {"files", std::move(files)}})
             .dump(2) +
         "\n";
}

std::optional<DataRecord> read_data_record(const RunPaths& paths) {
  if (!fs::exists(paths.data())) return std::nullopt;
  return take_json(paths.data(), [](const Json& json) {
    DataRecord record{json.at("name").text(), json.at("source").text(), json.at("path").text(), {}, {}};
    for (const Json& name : json.at("classes").items()) record.recorded.classes.push_back(name.text());
    for (const Json& name : json.at("validation").items()) record.recorded.validation.push_back(name.text());
    if (const Json& level = json.at("background"); level.dump() != "null")
      record.background = static_cast<int>(level.integer());
    for (const auto& [name, checksum] : json.at("files").entries()) record.recorded.files[name] = checksum.text();
    return record;
  });
}

std::string data_changes(const DataRecord& before, const DataRecord& now) {
  std::vector<std::string> added, removed, edited, renamed;
  std::multimap<std::string, std::string> gone;  // names by checksum
  for (const auto& [name, checksum] : before.recorded.files) {
    const auto found = now.recorded.files.find(name);
    if (found == now.recorded.files.end())
      gone.emplace(checksum, name);
    else if (found->second != checksum)
      edited.push_back(name);
  }
  for (const auto& [name, checksum] : now.recorded.files) {
    if (before.recorded.files.contains(name)) continue;
    const auto former = gone.find(checksum);
    if (former == gone.end()) {
      added.push_back(name);
      continue;
    }
    renamed.push_back(fmt::format("{} to {}", former->second, name));
    gone.erase(former);
  }
  for (const auto& [checksum, name] : gone) removed.push_back(name);
  std::ranges::sort(removed);
  std::string text;
  add_change(text, "added", added);
  add_change(text, "removed", removed);
  add_change(text, "renamed", renamed);
  add_change(text, "edited", edited);
  return text;
}

void use_record(Experiment& experiment, const DataRecord& record) {
  DataConfig& data = experiment.data;
  if (data.name != record.name || data.source != record.source) return;
  data.recorded = record.recorded;
  std::error_code none;
  const bool there = fs::exists(record.path, none);
  if (data.path.empty() && there) data.path = record.path;
  if (data.path == record.path && !there && is_in_usual_place(data)) data.path.clear();
}

}  // namespace heed
