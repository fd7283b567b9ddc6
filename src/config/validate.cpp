// Checks each key by its rule, then whether the keys fit together.
#include "heed/config/experiment.h"

#include "heed/base/suggest.h"

#include <algorithm>
#include <cmath>

namespace heed {
namespace {

// "[optim] lr": how errors name a key.
std::string label(std::string_view table, std::string_view key) { return fmt::format("[{}] {}", table, key); }

// "at least 0 and below 1"
std::string range(const Rule& rule) {
  std::string text;
  if (std::isfinite(rule.low)) text = fmt::format("{} {}", rule.above_low ? "more than" : "at least", rule.low);
  if (std::isfinite(rule.high))
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", rule.below_high ? "below" : "at most", rule.high);
  return text;
}

void check(const std::string& key, double value, const Rule& rule) {
  const bool above = rule.above_low ? value > rule.low : value >= rule.low;
  const bool below = rule.below_high ? value < rule.high : value <= rule.high;
  require(std::isfinite(value), "{} = {}; expected a finite number", key, value);
  require(above && below, "{} = {}; expected {}", key, value, range(rule));
}

void check(const std::string& key, Index value, const Rule& rule) {
  require(static_cast<double>(value) >= rule.low && static_cast<double>(value) <= rule.high, "{} = {}; expected {}",
          key, value, range(rule));
}

void check(const std::string& key, const std::string& value, const Rule& rule) {
  const auto& choices = rule.choices;
  require(choices.empty() || std::find(choices.begin(), choices.end(), value) != choices.end(), "{} = {}{}", key,
          in_quotes(value), suggestion(value, choices));
}

void check(const std::string&, bool, const Rule&) {}

template <class T>
void check(const std::string& key, const std::vector<T>& values, const Rule& rule) {
  for (const T& value : values) check(key, value, rule);
}

void check_images(const ModelConfig& model) {
  require(model.image % model.patch == 0, "[model] patch = {} does not divide image = {}", model.patch, model.image);
  require(model.pool != "last", "[model] pool = \"last\" is for sequences; expected cls or mean");
}

void check_model(const ModelConfig& model) {
  if (use_of(model, "patch", {}).known) check_images(model);
  require(model.dim % model.heads == 0, "[model] heads = {} does not divide dim = {}", model.heads, model.dim);
}

template <class T>
void check_blocks(const std::string&, const T&, const Rule&, Index) {}

template <class T>
void check_blocks(const std::string& key, const std::vector<T>& values, const Rule& rule, Index depth) {
  require(!rule.per_block || values.size() == 1 || static_cast<Index>(values.size()) == depth,
          "{} lists {} values; expected one, or one for each of the {} blocks", key, values.size(), depth);
}

void check_sequences(const DataConfig& data) {
  for (const std::string& change : data.augment)
    require(data.name == "pixels" && (change == "flip" || change == "shift"),
            "[data] augment = {} is not for name = {}{}", in_quotes(change), in_quotes(data.name),
            data.name == "pixels" ? "; expected flip or shift" : ", whose examples are taken as they are");
}

void check_images(const DataConfig& data) {
  for (const std::string& change : data.augment)
    require(change != "shift", "[data] augment = \"shift\" is for name = \"pixels\"");
}

void check_per_channel(const std::string& key, std::size_t items, Index channels) {
  require(items == 1 || static_cast<Index>(items) == channels,
          "{} lists {} values; expected one, or one for each of the {} channels", key, items, channels);
}

}  // namespace

void validate(const Experiment& experiment) {
  const ModelConfig& model = experiment.model;
  tables(experiment, [&](std::string_view table, const auto& config) {
    fields(config, [&](std::string_view key, const auto& member, const Rule& rule, std::string_view) {
      if (!use_of(config, key, rule).known) return;
      check(label(table, key), member, rule);
      check_blocks(label(table, key), member, rule, model.depth);
    });
  });
  check_model(model);
  holds_sequences(experiment.data) ? check_sequences(experiment.data) : check_images(experiment.data);
  check_per_channel("[data] mean", experiment.data.mean.size(), model.channels);
  check_per_channel("[data] std", experiment.data.std.size(), model.channels);
  const OptimConfig& optim = experiment.optim;
  require(optim.betas.size() == 2, "[optim] betas lists {} values; expected 2", optim.betas.size());
  require(optim.schedule == "constant" || optim.schedule == "rsqrt" || optim.min_lr <= optim.lr,
          "[optim] min_lr = {} is more than lr = {}", optim.min_lr, optim.lr);
  require(experiment.train.patience == 0 || experiment.data.validation > 0,
          "[train] patience = {} waits for validation, but [data] validation = 0 sets no images aside",
          experiment.train.patience);
}

}  // namespace heed
