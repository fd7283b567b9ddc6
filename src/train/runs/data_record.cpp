#include "heed/train/runs/data_record.h"

#include "heed/base/printable.h"
#include "heed/base/random.h"
#include "heed/base/suggest.h"
#include "heed/io/checksum.h"
#include "heed/io/file.h"
#include "heed/io/json.h"
#include "heed/nn/families.h"
#include "heed/train/tasks/task.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

namespace heed {

namespace fs = std::filesystem;

namespace {

/// Returns a file's path relative to the data's path; its name if the data are that single file.
std::string name_below(const fs::path& path, const std::string& file) {
  const fs::path below = fs::absolute(file).lexically_normal().lexically_relative(path);
  return below == "." ? path.filename().string() : below.string();
}

/// Returns a file's path from its name, the inverse of name_below(). The data's path may be a prefix that does not
/// exist itself.
std::string file_named(const std::string& name, const fs::path& path) {
  return fs::is_regular_file(path) ? path.string() : (path / name).lexically_normal().string();
}

/// Throws Error unless the name of a file or class is UTF-8, as JSON requires.
void require_utf8(const std::string& name) {
  require(Json::parse(Json(name).dump()).text() == name, "{}: the name is not UTF-8; rename it", printable(name));
}

/// Returns the image data set that the data are, or are derived from; empty for texts.
std::string images_of(const DataConfig& data) {
  if (use_of(data, "source", {}).known) return data.source;
  return holds_sequences(data) ? "" : data.name;
}

/// Returns an absolute path without a slash at its end.
fs::path normal(const fs::path& path) {
  fs::path absolute = fs::absolute(path).lexically_normal();
  return absolute.has_filename() ? absolute : absolute.parent_path();
}

/// Returns the directory or file of the data, or the prefix of its files' paths.
fs::path place_of(const DataConfig& data) {
  const std::string images = images_of(data);
  return normal(images.empty() ? fs::path(data.path) : dataset_directory(images, data.path, Split::train));
}

/// Returns `path` or, for an empty path, the default directory; empty if this data set is not there. Texts and folders
/// have no default directory.
fs::path found_at(const DataConfig& data, const std::string& path) {
  const std::string images = images_of(data);
  std::error_code error;
  if (images.empty()) return fs::exists(path, error) ? path : "";
  for (const Split split : {Split::train, Split::test}) try {
      return dataset_directory(images, path, split);
    } catch (const Error&) {
      continue;
    }
  return {};
}

/// Appends, for example, "2 added (a, b)", with at most three names; appends nothing if there are no names.
void add_change(std::string& text, const char* what, const std::vector<std::string>& names) {
  if (names.empty()) return;
  text += fmt::format("{}{} {} ({})", text.empty() ? "" : ", ", names.size(), what, first_names(names, 3));
}

/// Returns the names of the training and validation files, by checksum.
std::map<std::string, std::string> learned_files(const DataRecord& record) {
  const std::set<std::string> test(record.recorded.test.begin(), record.recorded.test.end());
  std::map<std::string, std::string> files;
  for (const auto& [name, checksum] : record.recorded.files)
    if (!test.contains(name)) files.emplace(checksum, name);
  return files;
}

/// Returns the text of copied_test_files(): the test files of `tested` that are copies of training or validation files
/// of `trained`. `others` has the names of the latter files by checksum. Files of `trained` that are missing or have
/// changed since the run was recorded are compared by their recorded checksums alone.
std::string copies_text(const DataRecord& tested, const DataRecord& trained,
                        const std::map<std::string, std::string>& others) {
  const std::set<std::string> test(tested.recorded.test.begin(), tested.recorded.test.end());
  const auto same = [&](const std::string& name, const std::string& other) {
    const std::string learned = file_named(other, trained.path);
    std::error_code error;
    if (!fs::is_regular_file(learned, error)) return true;
    const std::string content = read_file(learned);
    return checksum(content) != trained.recorded.files.at(other) || read_file(file_named(name, tested.path)) == content;
  };
  std::vector<std::string> copies;
  for (const std::string& name : test) {
    const auto file = tested.recorded.files.find(name);
    const auto other = file == tested.recorded.files.end() ? others.end() : others.find(file->second);
    const bool labels_alone = name.find("labels") != std::string::npos && name.find("idx1-ubyte") != std::string::npos;
    if (other != others.end() && !labels_alone && same(name, other->second))
      copies.push_back(fmt::format("{} is {}", name, other->second));
  }
  return copies.empty() ? ""
                        : fmt::format("{} of {} test files are copies of training or validation files: {}",
                                      copies.size(), test.size(), first_names(copies, 3));
}

}  // namespace

DataRecord describe_data(const DataConfig& data, const DataFacts& facts) {
  // The path is empty for data without files.
  const fs::path path = facts.files.empty() ? fs::path() : place_of(data);
  for (const std::string& file : facts.files) require_utf8(file);
  for (const std::string& name : facts.classes) require_utf8(name);
  DataRecord record{data.name, data.source, path, {.classes = facts.classes}, facts.background, {}};
  std::vector<std::string>& validation = facts.sets_aside ? record.recorded.validation : record.own_validation;
  for (const std::string& file : facts.validation) validation.push_back(name_below(path, file));
  if (!record.recorded.validation.empty())
    record.recorded.validation_removed = data.validation - std::ssize(facts.validation);
  for (const std::string& file : facts.test) record.recorded.test.push_back(name_below(path, file));
  for (const std::string& file : facts.files) record.recorded.files[name_below(path, file)] = file_checksum(file);
  return record;
}

DataRecord describe_data_now(const Experiment& experiment) {
  const std::unique_ptr<Model> model = make_model(experiment);
  const std::unique_ptr<Task<float>> task = make_task<float>(experiment, *model);
  task->open(Part::train, true);
  task->open(Part::validation, false);
  task->open(Part::test, false);
  return describe_data(experiment.data, task->data_facts());
}

std::string data_json(const DataRecord& record) {
  Json files = Json::object();
  for (const auto& [name, checksum] : record.recorded.files) files[name] = checksum;
  Json json = Json::object({{"name", record.name},
                            {"path", record.path},
                            {"classes", record.recorded.classes},
                            {"background", record.background},
                            {"validation", record.recorded.validation},
                            {"test", record.recorded.test},
                            {"files", std::move(files)},
                            {"changes", record.changes}});
  DataConfig data;
  data.name = record.name;
  if (use_of(data, "source", {}).known) json["source"] = record.source;
  if (const Index removed = record.recorded.validation_removed; removed > 0) json["validation_removed"] = removed;
  return json.dump(2) + "\n";
}

std::optional<DataRecord> read_data_record(const RunPaths& paths) {
  if (!fs::exists(paths.data())) return std::nullopt;
  return take_json(paths.data(), [](const Json& json) {
    const std::string source = json.contains("source") ? json.at("source").text() : DataConfig().source;
    DataRecord record{json.at("name").text(), source, json.at("path").text(), {}, {}, {}};
    for (const Json& name : json.at("classes").items()) record.recorded.classes.push_back(name.text());
    for (const Json& name : json.at("validation").items()) record.recorded.validation.push_back(name.text());
    if (json.contains("validation_removed"))
      record.recorded.validation_removed = json.at("validation_removed").integer();
    if (json.contains("test"))  // written since heed 0.3.0
      for (const Json& name : json.at("test").items()) record.recorded.test.push_back(name.text());
    if (json.contains("changes"))
      for (const Json& text : json.at("changes").items()) record.changes.push_back(text.text());
    if (const Json& level = json.at("background"); level.dump() != "null")
      record.background = static_cast<int>(level.integer());
    for (const auto& [name, checksum] : json.at("files").entries()) record.recorded.files[name] = checksum.text();
    return record;
  });
}

std::string data_changes(const DataRecord& before, const DataRecord& now) {
  const Checksums &had = before.recorded.files, &has = now.recorded.files;
  const std::map<std::string, std::string> former = former_names(had, has, before.recorded.test);
  std::set<std::string> gone;
  for (const auto& [name, checksum] : had) gone.insert(name);
  for (const auto& [name, was] : former) gone.erase(was);
  std::vector<std::string> added, edited, renamed;
  for (const auto& [name, checksum] : has) {
    const auto was = former.find(name);
    if (was != former.end() && was->second != name)
      renamed.push_back(fmt::format("{} to {}", was->second, name));
    else if (was == former.end() && gone.erase(name) == 0)
      added.push_back(name);
    else if (had.at(name) != checksum)
      edited.push_back(name);
  }
  const std::vector<std::string> removed(gone.begin(), gone.end());
  std::string text;
  add_change(text, "added", added);
  add_change(text, "removed", removed);
  add_change(text, "renamed", renamed);
  add_change(text, "edited", edited);
  return text;
}

Index former_held_out(const DataRecord& before, const DataRecord& now) {
  const Checksums &had = before.recorded.files, &has = now.recorded.files;
  std::vector<std::string> held_out = before.recorded.test;
  held_out.insert(held_out.end(), before.recorded.validation.begin(), before.recorded.validation.end());
  const std::set<std::string> were(held_out.begin(), held_out.end());
  std::set<std::string> are;
  for (const auto* const names : {&now.recorded.validation, &now.recorded.test, &now.own_validation})
    are.insert(names->begin(), names->end());
  return std::ranges::count_if(former_names(had, has, held_out), [&](const auto& name) {
    return were.contains(name.second) && !are.contains(name.first) && had.at(name.second) == has.at(name.first);
  });
}

std::string data_difference(const DataRecord& before, const DataRecord& now) {
  if (const std::string changes = data_changes(before, now); !changes.empty()) return changes;
  if (before.recorded.classes != now.recorded.classes) return "other classes";
  return before.recorded.test != now.recorded.test ? "other test files" : "";
}

std::string data_hash(const DataRecord& record) {
  std::string content;
  const auto add = [&](const std::string& text) { content.append(text).push_back('\0'); };
  for (const auto& [name, checksum] : record.recorded.files) add(name), add(checksum);
  for (const std::vector<std::string>* const names : {&record.recorded.classes, &record.recorded.test}) {
    add("");
    for (const std::string& name : *names) add(name);
  }
  return fmt::format("{:016x}", RandomStream().derive(content).bits(0));
}

std::string data_hash(const RunPaths& paths) {
  const std::optional<DataRecord> record = read_data_record(paths);
  return record ? data_hash(*record) : "";
}

std::string data_text(const DataRecord& record, const DataRecord& others) {
  const std::string difference = data_difference(others, record);
  return difference.empty() ? record.path : fmt::format("{}: {}", record.path, difference);
}

std::string copied_test_files(const DataRecord& record, const DataRecord* before) {
  DataRecord learned = record;
  std::map<std::string, std::string> others = learned_files(record);
  for (const auto& [checksum, name] : learned_files(before == nullptr ? DataRecord() : *before))
    if (others.emplace(checksum, name).second) learned.recorded.files[name] = checksum;
  return copies_text(record, learned, others);
}

std::string copied_test_files(const DataRecord& record, const std::vector<std::string>& files) {
  if (record.recorded.test.empty()) return "";  // the record does not distinguish training and test files
  const std::map<std::string, std::string> learned = learned_files(record);
  std::set<std::string> lengths;
  for (const auto& [checksum, name] : learned) lengths.insert(checksum.substr(checksum.find('-') + 1));
  DataRecord tested;
  tested.recorded.test = files;
  for (const std::string& file : files)
    if (lengths.contains(std::to_string(fs::file_size(file)))) tested.recorded.files[file] = file_checksum(file);
  return copies_text(tested, record, learned);
}

std::string changed_files(const DataConfig& data, const std::vector<std::string>& names,
                          const std::vector<std::string>& read) {
  const fs::path found = data.path.empty() ? found_at(data, "") : fs::path(data.path);
  if (found.empty()) return "";
  const fs::path root = normal(found);
  DataRecord before, now;
  for (const std::string& name : names) {
    const std::string file = file_named(name, root);
    const auto recorded = data.recorded.files.find(name);
    const bool known = recorded != data.recorded.files.end();
    std::error_code error;
    before.recorded.files[name] = known ? recorded->second : "";
    if (fs::exists(file, error)) now.recorded.files[name] = known ? file_checksum(file) : "";
  }
  if (now.recorded.files.empty()) return "";
  for (const std::string& file : read)
    if (const std::string name = name_below(root, file); !data.recorded.files.contains(name))
      now.recorded.files[name] = file_checksum(file);
  return data_changes(before, now);
}

void use_record(Experiment& experiment, const DataRecord& record) {
  DataConfig& data = experiment.data;
  if (data.name != record.name || data.source != record.source) return;
  data.recorded = record.recorded;
  if (record.path.empty()) return;
  const bool there = !found_at(data, record.path).empty();
  if (data.path.empty() && there) data.path = record.path;
  if (there || data.path.empty() || normal(data.path) != record.path || found_at(data, "").empty()) return;
  // If several data sets share a directory, the recorded path is a prefix of the names of one set's files, not a
  // directory; relative to it, the files' names begin with "..". The default directory may then hold another set, so
  // the path is kept.
  const auto beside_path = [](const auto& file) { return file.first.starts_with(".."); };
  if (std::ranges::none_of(record.recorded.files, beside_path)) data.path.clear();
}

}  // namespace heed
