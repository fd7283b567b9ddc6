// The keys that a model of a family and task, or a data set of a kind, may have.
#include "heed/config/experiment.h"

#include <algorithm>

namespace heed {

namespace {

bool is_one_of(std::string_view key, std::initializer_list<std::string_view> keys) {
  return std::find(keys.begin(), keys.end(), key) != keys.end();
}

/// Returns true for a known task. An unknown task is reported before any key, since the valid keys depend on the task.
bool has_task(const ModelConfig& model) { return is_one_of(model.task, {"lm", "classify", "pair"}); }

bool has_key(const ModelConfig& model, std::string_view key) {
  if (model.family != "sequence" || !has_task(model)) return true;
  if (is_one_of(key, {"start", "tied"})) return model.task == "lm";
  if (is_one_of(key, {"classes", "pool", "head"})) return model.task != "lm";
  return key != "pair" || model.task == "pair";
}

bool has_key(const DataConfig& data, std::string_view key) {
  const bool pixels = data.name == "pixels", text = data.name == "text";
  if (key == "source") return pixels || data.name == "scenes";
  if (is_one_of(key, {"side", "grey", "levels"})) return pixels;
  if (key == "orientation") return data.name == "folder";
  if (key == "skip_bad") return data.name == "folder" || data.name == "documents";
  if (data.name == "scenes") return is_one_of(key, {"name", "path", "validation", "limit", "mean", "std", "shuffle"});
  if (is_one_of(key, {"stride", "windows"})) return text;
  if (key == "header") return data.name == "documents";
  if (!holds_sequences(data)) return true;
  if (key == "validation") return pixels || data.name == "documents";
  return is_one_of(key, {"name", "path", "limit", "shuffle", "augment"});
}

}  // namespace

bool holds_sequences(const DataConfig& data) {
  return is_one_of(data.name, {"text", "listops", "documents", "pairs", "pixels"});
}

KeyUse use_of(const ModelConfig& model, std::string_view key, const Rule& rule) {
  if (model.family != "sequence") return {has_key(model, key), rule.required};
  const bool of_task = key == "classes" || key == "pool";
  return {has_key(model, key), of_task ? has_task(model) : rule.required};
}

KeyUse use_of(const DataConfig& data, std::string_view key, const Rule& rule) {
  return {has_key(data, key), rule.required};
}

}  // namespace heed
