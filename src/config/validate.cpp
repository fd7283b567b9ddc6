// Checks each key by its rule, then the consistency of the keys.
#include "heed/config/experiment.h"

#include "heed/base/float_range.h"
#include "heed/base/suggest.h"
#include "heed/config/toml_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace heed {

std::string toml_text(const Sides& sides) {
  return sides.square() ? fmt::format("{}", sides.height) : fmt::format("[{}, {}]", sides.height, sides.width);
}

namespace {

// Returns, for example, "[optim] lr", for error messages.
std::string label(std::string_view table, std::string_view key) { return fmt::format("[{}] {}", table, key); }

// Returns, for example, "at least 0 and below 1".
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
  require(!exceeds_float(value), "{} = {}; expected {}", key, value, within_float);
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

void check(const std::string& key, const Sides& value, const Rule& rule) {
  check(key, value.height, rule);
  check(key, value.width, rule);
}

void check(const std::string&, bool, const Rule&) {}
void check(const std::string&, const std::optional<bool>&, const Rule&) {}

template <class T>
void check_member(std::string_view table, std::string_view key, const T& value, const Rule& rule, const ModelConfig&) {
  check(label(table, key), value, rule);
}

template <class T>
void check_member(std::string_view table, std::string_view key, const std::vector<T>& values, const Rule& rule,
                  const ModelConfig& model) {
  // Error messages about one value for all stages name no stage.
  const bool of_stages = rule.per_stage || (rule.per_block && model.is_staged() && values.size() > 1);
  for (std::size_t i = 0; i < values.size(); ++i)
    check(of_stages ? label(table, fmt::format("stage {}: {}", model.stage_number(i), key)) : label(table, key),
          values[i], rule);
  const auto count = static_cast<Index>(values.size());
  const bool stages = model.is_staged();
  const Index most = stages ? model.stages.count() : model.depth;
  require(!rule.per_stage || (count == most && count > 0), "{} has {} values, dim has {}; expected one for each stage",
          label(table, key), count, most);
  require(!rule.per_block || count == 1 || count == most,
          "{} has {} values; expected one, or one for each of the {} {}", label(table, key), count, most,
          stages ? "stages" : "blocks");
}

/// Returns the side of a stage's grid: the number of windows of side `kernel` along a grid of side `before`.
Index checked_grid(Index stage, Index before, Index kernel, Index stride, Index padding) {
  require(before + 2 * padding >= kernel,
          "[model] stage {}: no window of {} x {} fits a grid of {} x {} with padding = {}; the stage has no tokens",
          stage, kernel, kernel, before, before, padding);
  require(padding < kernel,
          "[model] stage {}: padding = {} on a grid of {} x {}; expected less than patch = {}, since larger padding "
          "gives windows without input",
          stage, padding, before, before, kernel);
  return (before + 2 * padding - kernel) / stride + 1;
}

void check_stages(const ModelConfig& model) {
  const StageSizes& s = model.stages;
  const bool is_cvt = family_called(model.family) == cvt;
  Index side = model.image;
  for (std::size_t i = 0; i < s.dim.size(); ++i) {
    const Index stage = static_cast<Index>(model.stage_number(i));
    require(s.dim[i] % s.heads[i] == 0, "[model] stage {}: heads = {} does not divide dim = {}", stage, s.heads[i],
            s.dim[i]);
    if (is_cvt) {
      side = checked_grid(stage, side, s.patch[i], s.stride[i], s.padding[i]);
      continue;
    }
    const Index stride = s.stride[i];
    require(stride == 1 || stride == 2 || (i == 0 && stride == 4), "[model] stage {}: stride = {}; expected {}", stage,
            stride, i == 0 ? "1, 2 or 4" : "1 or 2");
    side = (side + stride - 1) / stride;
  }
}

void check_heads(const ModelConfig& model) {
  require(model.dim % model.heads == 0, "[model] heads = {} does not divide dim = {}", model.heads, model.dim);
}

/// Throws Error unless the tokens before the patches are consistent with each other, the pooling and the output.
void check_prefix(const ModelConfig& model) {
  require(model.has_class_token() || model.pool != "cls",
          "[model] class_token = false; pool = \"cls\" classifies the class token: set pool = \"mean\"");
  require(!model.distilled || model.pool == "cls", "[model] distilled = true; expected pool = \"cls\", not {}",
          in_quotes(model.pool));
  require(!model.distilled || model.registers == 0, "[model] distilled = true; expected registers = 0, not {}",
          model.registers);
  require(!model.distilled || model.output == "class",
          "[model] distilled = true classifies images; expected output = \"class\", not {}", in_quotes(model.output));
}

void check_model(const ModelConfig& model) {
  require(model.image.square() || family_called(model.family) == vit,
          "[model] image = {}; family = {} requires square images", toml_text(model.image), in_quotes(model.family));
  if (model.is_staged()) return check_stages(model);
  if (family_called(model.family) == sequence) return check_heads(model);
  const bool is_xcit = family_called(model.family) == xcit;
  require(model.patch.square() || !is_xcit, "[model] patch = {}; family = \"xcit\" requires square patches",
          toml_text(model.patch));
  require(!is_xcit || model.patch == 2 || model.patch == 4 || model.patch == 8 || model.patch == 16,
          "[model] patch = {}; expected 2, 4, 8 or 16", toml_text(model.patch));
  require(model.image.height % model.patch.height == 0 && model.image.width % model.patch.width == 0,
          "[model] patch = {} does not divide image = {}", toml_text(model.patch), toml_text(model.image));
  check_prefix(model);
  check_heads(model);
  require(!is_xcit || model.dim % (model.patch.height / 2) == 0,
          "[model] dim = {0}; expected a multiple of {2}, since the convolutions for patch = {1} halve the width",
          model.dim, model.patch.height, model.patch.height / 2);
}

void check_augment_once(const DataConfig& data) {
  for (const std::string& change : data.augment)
    require(std::count(data.augment.begin(), data.augment.end(), change) == 1, "[data] augment: {} is given twice",
            in_quotes(change));
}

void check_sequences(const DataConfig& data) {
  for (const std::string& change : data.augment)
    require(data.name == "pixels" && (change == "flip" || change == "shift"),
            "[data] augment = {} is not defined for name = {}{}", in_quotes(change), in_quotes(data.name),
            data.name == "pixels" ? "; expected flip or shift" : ", whose examples are not augmented");
}

void check_images(const Experiment& x) {
  const std::vector<std::string> of_views{"flip", "jitter", "grey", "blur", "solarise"};
  for (const std::string& change : x.data.augment) {
    require(change != "shift", "[data] augment = \"shift\" is defined for name = \"pixels\" only");
    const bool of_view = std::find(of_views.begin(), of_views.end(), change) != of_views.end();
    require(x.self_supervised() ? of_view : !of_view || change == "flip",
            "[data] augment = {} is not defined for method = {}{}", in_quotes(change), in_quotes(x.train.method),
            x.self_supervised() ? "; expected flip, jitter, grey, blur or solarise, in addition to the crops of [dino]"
                                : ", only for \"dino\"");
    require(x.model.channels == 3 || (change != "jitter" && change != "grey"),
            "[data] augment = {} requires colour images, [model] channels = 3; found {}", in_quotes(change),
            x.model.channels);
  }
}

void check_scale(const char* key, const std::vector<double>& scale) {
  require(scale.size() == 2 && scale[0] <= scale[1], "[dino] {}: expected two fractions, the smaller first; found {}",
          key, fmt::join(scale, ", "));
}

void check_dino(const Experiment& x) {
  if (!x.self_supervised()) return;
  const ModelConfig& model = x.model;
  require(model.family == "vit" || model.family == "xcit",
          "[train] method = \"dino\" requires family = vit or xcit, found {}", in_quotes(model.family));
  require(model.output == "class", "[train] method = \"dino\" has its own head; remove [model] output = {}",
          in_quotes(model.output));
  require(!holds_sequences(x.data) && x.data.name != "scenes",
          "[train] method = \"dino\" requires images; [data] name = {}", in_quotes(x.data.name));
  require(x.train.ema == 0,
          "[train] ema = {}: with method = \"dino\" the teacher is the moving average; set its decay in [dino] ema",
          x.train.ema);
  require(x.train.label_smoothing == 0, "[train] label_smoothing = {}, but method = \"dino\" has no labels",
          x.train.label_smoothing);
  check_scale("global_scale", x.dino.global_scale);
  check_scale("local_scale", x.dino.local_scale);
  require(model.image.square() && model.patch.square(),
          "[train] method = \"dino\" requires square images and patches; [model] image = {}, patch = {}",
          toml_text(model.image), toml_text(model.patch));
  require(x.dino.local_crops == 0 || x.dino.local_size <= model.image,
          "[dino] local_size = {}; expected at most [model] image = {}", x.dino.local_size, model.image.height);
  require(x.dino.local_crops == 0 || x.dino.local_size % model.patch == 0,
          "[dino] local_size = {}; [model] patch = {} does not divide it", x.dino.local_size, model.patch.height);
}

void check_dense(const Experiment& x) {
  const bool scenes = x.data.name == "scenes", tokens = x.model.output == "tokens";
  require(!scenes || tokens, "[data] name = \"scenes\" has one label per patch; set model.output=\"tokens\"");
  require(!tokens || x.train.label_smoothing == 0,
          "[train] label_smoothing = {} requires one label per image; [model] output = \"tokens\" has one per patch",
          x.train.label_smoothing);
}

void check_per_channel(const std::string& key, std::size_t items, Index channels) {
  require(items == 1 || static_cast<Index>(items) == channels,
          "{} has {} values; expected one, or one for each of the {} channels", key, items, channels);
}

}  // namespace

void validate(const Experiment& experiment) {
  const ModelConfig& model = experiment.model;
  tables(experiment, [&](std::string_view table, const auto& config) {
    if (!uses_table(experiment, table)) return;
    fields(config, [&](std::string_view key, const auto& member, const Rule& rule, std::string_view) {
      if (!use_of(config, key, rule).known) return;
      try {
        check_member(table, key, member, rule, model);
      } catch (const Error& error) {
        throw KeyError(fmt::format("{}.{}", table, key), error.what());
      }
    });
  });
  check_model(model);
  check_augment_once(experiment.data);
  holds_sequences(experiment.data) ? check_sequences(experiment.data) : check_images(experiment);
  check_dino(experiment);
  check_dense(experiment);
  check_per_channel("[data] mean", experiment.data.mean.size(), model.channels);
  check_per_channel("[data] std", experiment.data.std.size(), model.channels);
  const OptimConfig& optim = experiment.optim;
  require(optim.weight_decay_end >= 0 || optim.weight_decay_end == -1,
          "[optim] weight_decay_end = {}; expected at least 0, or -1 for none", optim.weight_decay_end);
  require(optim.betas.size() == 2, "[optim] betas has {} values; expected 2", optim.betas.size());
  require(!optim.falls_to_min() || optim.min_lr <= optim.lr, "[optim] min_lr = {} is more than lr = {}", optim.min_lr,
          optim.lr);
}

}  // namespace heed
