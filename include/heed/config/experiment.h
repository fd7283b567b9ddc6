// Configuration of models and experiments, read from TOML files. Each struct's members hold the defaults; the function
// `fields` below it visits its keys, with their ranges and meanings (config/field.h).
#pragma once

#include "heed/config/attention_options.h"
#include "heed/config/field.h"
#include "heed/config/data.h"
#include "heed/config/dino.h"
#include "heed/base/error.h"
#include "heed/base/tensor.h"

#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace heed {

/// Model families, as bit flags.
enum Families : unsigned {
  vit = 1,
  xcit = 2,
  cvt = 4,
  soft_pyramid = 8,
  sequence = 16,
  staged = cvt | soft_pyramid,  ///< families with lists of sizes, one item per stage
  of_images = vit | xcit | staged,
  every_family = of_images | sequence,
};

/// Names of the families. family_called() returns the family of a name, vit for unknown names.
inline constexpr std::pair<const char*, Families> family_names[] = {
    {"vit", vit}, {"xcit", xcit}, {"cvt", cvt}, {"soft-pyramid", soft_pyramid}, {"sequence", sequence}};
inline Families family_called(std::string_view name) {
  for (const auto& [known, family] : family_names)
    if (name == known) return family;
  return vit;
}

/// Sizes of a staged model, by stage.
struct StageSizes {
  std::vector<Index> patch, stride, padding, dim, depth, heads, hidden;
  std::vector<Index> kv_stride = {2};       // or one item for all stages
  std::vector<std::string> act = {"gelu"};  // or one item for all stages

  Index count() const { return static_cast<Index>(dim.size()); }

  bool operator==(const StageSizes&) const = default;
};

/// Height and width of an image or a patch; written as one number if equal.
struct Sides {
  Index height = 0, width = 0;

  Sides() = default;
  Sides(Index side) : height(side), width(side) {}
  Sides(Index rows, Index columns) : height(rows), width(columns) {}

  bool square() const { return height == width; }

  /// Returns the side of a square. Throws Error if height and width differ.
  operator Index() const {
    require(square(), "[model] image or patch of {} x {}; expected a square here", height, width);
    return height;
  }

  bool operator==(const Sides&) const = default;
  template <std::integral Number>
  bool operator==(Number side) const {
    return *this == Sides(side);
  }
};

/// [model]: a model; each family has a subset of the keys. fields() below documents them.
struct ModelConfig {
  std::string family = "vit";
  std::string task{};
  Index vocab = 0;
  Index context = 0;
  bool start = false;
  bool tied = false;
  Sides image{};
  Index channels = 0;
  Sides patch{};
  Index dim = 0;
  Index depth = 0;
  Index heads = 0;
  Index hidden = 0;
  Index classes = 0;
  std::string pool = "cls";
  std::optional<bool> class_token{};  ///< unset: true if pool = "cls"
  Index registers = 0;
  bool distilled = false;
  bool embed_prefix = true;
  std::string pool_norm = "before";
  double block_scale = 0.0;  ///< the key layer_scale for family = "vit"
  bool qkv_bias = true;
  bool pre_norm = false;
  double norm_eps = 1e-6;
  std::string output = "class";
  bool classifier = true;  ///< not a key; false: the model returns the classifier's input features as logits
  std::string head = "linear";
  std::string pair = "nli";
  bool pos_embed = true;
  bool qk_norm = false;
  bool gate = false;
  std::string gate_act = "none";
  std::string act = "gelu";
  std::vector<std::string> linear = {"mul"};
  std::string ffn_act = "none";
  std::string input_grad = "hardtanh";
  std::string weight_grad = "full";
  std::string weight_scale = "none";
  StageSizes stages{};
  double layer_scale = 1.0;
  bool tokens_norm = true;
  Index cls_depth = 2;
  std::string cls_attention = "softmax";
  bool lpi = true;
  std::string qk_scale = "head";
  Index stem = 32;
  Index bn_group = 0;

  bool has_class_token() const { return class_token.value_or(pool == "cls"); }

  /// Returns the number of tokens before the patches: class token, distillation token, registers.
  Index prefix_tokens() const { return (has_class_token() ? 1 : 0) + (distilled ? 1 : 0) + registers; }

  /// Returns the grid of patches.
  Sides grid() const { return {image.height / patch.height, image.width / patch.width}; }

  bool is_staged() const { return (family_called(family) & staged) != 0; }

  /// Returns the index of stage i in tensor names: CvT counts from 0, SOFT's pyramid from 1.
  std::size_t stage_number(std::size_t i) const { return family_called(family) == cvt ? i : i + 1; }

  bool operator==(const ModelConfig&) const = default;
};

/// Visits the keys of [model] that the model's family has.
template <MaybeConst<ModelConfig> Config, class Visit>
void fields(Config& c, Visit&& visit) {
  const Families family = family_called(c.family);
  const auto key = [&](unsigned of, const char* name, auto& member, const Rule& rule, const char* meaning) {
    if (of & family) visit(name, member, rule, meaning);
  };
  constexpr unsigned one_size = vit | xcit | sequence;  // families with one size for all blocks
  auto& s = c.stages;
  key(every_family, "family", c.family, anything(), "vit, xcit, cvt or soft-pyramid for images; sequence for tokens");
  key(sequence, "task", c.task, required_one_of({"lm", "classify", "pair"}),
      "predict the next token, the label of a sequence, or the label of a pair");
  key(sequence, "vocab", c.vocab, required_size(), "number of distinct tokens");
  key(sequence, "context", c.context, required_size(), "maximum length of an input, in tokens");
  key(sequence, "start", c.start, anything(), "a trained first input, so that the first token is predicted too");
  key(sequence, "tied", c.tied, anything(), "the head shares the token embedding's weight");
  key(of_images, "image", c.image, required_side(), "side length of the images, or [height, width]");
  key(of_images, "channels", c.channels, required_size(), "1: grey, 3: colour");
  key(vit | xcit, "patch", c.patch, required_size(),
      "side length of a patch, or [height, width]; each patch becomes a token");
  key(cvt, "patch", s.patch, required_sizes(), "side length of the windows that become tokens, for each stage");
  key(staged, "stride", s.stride, required_sizes(), "stride of the windows");
  key(cvt, "padding", s.padding, required_sizes(0), "width of the zero padding on each side");
  key(one_size, "dim", c.dim, required_size(), "width of a token");
  key(staged, "dim", s.dim, required_sizes(), "width of a token");
  key(one_size, "depth", c.depth, required_depth(), "number of blocks");
  key(staged, "depth", s.depth, required_sizes(1, 1e4), "number of blocks");
  key(one_size, "heads", c.heads, required_size(), "attention heads per block");
  key(staged, "heads", s.heads, required_sizes(), "attention heads per block");
  key(one_size, "hidden", c.hidden, required_size(), "width of the feed-forward layer");
  key(staged, "hidden", s.hidden, required_sizes(), "width of the feed-forward layer");
  key(every_family, "classes", c.classes, required_size(), "number of classes");
  key(vit | staged, "pool", c.pool, one_of({"cls", "mean"}), "classify a class token, or the mean of all tokens");
  key(vit, "class_token", c.class_token, anything(), "a class token; default: true for pool = \"cls\"");
  key(vit, "registers", c.registers, between(0, 1e4), "learned tokens between the class token and the patches");
  key(vit, "distilled", c.distilled, anything(),
      "a second class token with its own classifier; logits are the mean of both");
  key(vit, "embed_prefix", c.embed_prefix, anything(), "tokens before the patches have position embeddings");
  key(vit, "pool_norm", c.pool_norm, one_of({"before", "after"}), "position of the final norm relative to pooling");
  key(vit, "layer_scale", c.block_scale, at_least(0), "initial factors of each block's branches; 0: none");
  key(vit, "qkv_bias", c.qkv_bias, anything(), "a bias in the projections to q, k and v");
  key(vit, "pre_norm", c.pre_norm, anything(), "a norm before the first block; the patch projection has no bias");
  key(vit, "norm_eps", c.norm_eps, more_than(0), "eps of the layer norms other than qk_norm");
  key(vit, "output", c.output, one_of({"class", "tokens"}), "classify the image, or each of its patches");
  key(sequence, "pool", c.pool, one_of({"cls", "mean", "last"}),
      "classify a class token, the mean of all tokens, or the last");
  key(sequence, "head", c.head, one_of({"linear", "mlp"}), "the classifier: a layer, or two with ReLU between them");
  key(sequence, "pair", c.pair, one_of({"nli", "concat"}),
      "classifier input for the pair x, y: x, y, x y, x - y (nli); or x, y (concat)");
  key(vit | soft_pyramid | sequence, "pos_embed", c.pos_embed, anything(), "learned position embedding");
  key(xcit, "pos_embed", c.pos_embed, anything(), "a projection of sines and cosines of the position");
  key(every_family, "qk_norm", c.qk_norm, anything(), "layer norm on the queries and keys of each head");
  key(every_family, "gate", c.gate, anything(), "multiply attention's output by act(x W + b)");
  key(every_family, "gate_act", c.gate_act, one_of({"none", "silu"}), "the gate's act");
  const std::vector<std::string> acts{"gelu", "relu", "gelu_tanh", "quick_gelu"};
  key(vit | sequence, "act", c.act, one_of(acts), "activation of the feed-forward layer");
  key(xcit, "act", c.act, one_of(acts), "activation of the stem and of the blocks");
  key(staged, "act", s.act, per_block(acts), "activation of the feed-forward layer; or a list, one per stage");
  key(vit | sequence, "linear", c.linear, per_block({"mul", "adder"}),
      "linear layers: products or l1 distances; or a list, one per block");
  key(vit | sequence, "ffn_act", c.ffn_act, one_of({"none", "gelu", "relu"}),
      "activation of an adder block's feed-forward layer");
  key(vit | sequence, "input_grad", c.input_grad, one_of({"sign", "hardtanh"}),
      "adder layers: derivative of a distance with respect to the input");
  key(vit | sequence, "weight_grad", c.weight_grad, one_of({"sign", "hardtanh", "full"}),
      "adder layers: derivative with respect to the weight");
  key(vit | sequence, "weight_scale", c.weight_scale, one_of({"none", "adaptive"}),
      "adder layers: scale of the weights' gradients");
  key(xcit, "layer_scale", c.layer_scale, anything(), "initial factor of the branches");
  key(xcit, "tokens_norm", c.tokens_norm, anything(), "class attention: the second norm applies to all tokens");
  key(xcit, "cls_depth", c.cls_depth, {.low = 1, .high = 1e4}, "blocks of class attention");
  key(xcit, "cls_attention", c.cls_attention, one_of({"softmax", "sima"}), "mechanism of class attention");
  key(xcit, "lpi", c.lpi, anything(), "local patch interaction: depth-wise convolutions in each block");
  key(cvt, "kv_stride", s.kv_stride, {.low = 1, .high = 1e6, .per_block = true},
      "stride of the convolutions for keys and values; or a list, one per stage");
  key(cvt, "qk_scale", c.qk_scale, one_of({"head", "width"}), "width: queries are divided by the square root of heads");
  key(soft_pyramid, "stem", c.stem, one_or_more(), "width of the first two convolutions");
  key(xcit | staged, "bn_group", c.bn_group, at_least(0),
      "images that share batch-norm statistics; 0: all images of a step");
}

/// Visits the keys of [attention] that are not options.
template <MaybeConst<AttentionConfig> Config, class Visit>
void fields(Config& c, Visit&& visit) {
  visit("mechanism", c.mechanism, per_block({}), "a name in `heed list`; or a list, one per block or stage");
}

/// [optim]: optimiser and schedule. fields() below documents the keys.
struct OptimConfig {
  std::string name = "adamw";
  double lr = 1e-3;
  std::vector<double> betas = {0.9, 0.999};
  double eps = 1e-8;
  double weight_decay = 0.05;
  double weight_decay_end = -1;
  double momentum = 0.9;
  double clip = 1.0;
  std::string schedule = "cosine";
  double warmup_epochs = 1;
  Index warmup_steps = 0;
  double min_lr = 0.0;

  /// Returns true if the learning rate falls from lr, at the end of the warm-up, to min_lr.
  bool falls_to_min() const { return schedule == "cosine" || schedule == "linear"; }
  bool operator==(const OptimConfig&) const = default;
};

/// Visits the keys of [optim].
template <MaybeConst<OptimConfig> Config, class Visit>
void fields(Config& c, Visit&& visit) {
  visit("name", c.name, one_of({"adamw", "sgd"}), "the optimiser");
  visit("lr", c.lr, at_least(0), "learning rate after the warm-up");
  visit("betas", c.betas, fraction(), "adamw: decay rates of the gradient's mean and mean square");
  visit("eps", c.eps, more_than(0), "adamw: added to the denominator, keeps steps finite if gradients vanish");
  visit("weight_decay", c.weight_decay, at_least(0),
        "weight decay; not for biases, norms, cls_token, pos_embed, vectors");
  visit("weight_decay_end", c.weight_decay_end, at_least(-1), "final weight decay of a cosine schedule; -1: constant");
  visit("momentum", c.momentum, fraction(), "sgd: momentum factor");
  visit("clip", c.clip, at_least(0), "maximum global norm of the gradient (with dino: norm per tensor); 0: no limit");
  visit("schedule", c.schedule, one_of({"cosine", "linear", "rsqrt", "constant"}),
        "learning rate after the warm-up; rsqrt: lr min(1, s/w) / sqrt(max(s, w)) in step s with w warm-up steps");
  visit("warmup_epochs", c.warmup_epochs, at_least(0), "epochs of linear warm-up");
  visit("warmup_steps", c.warmup_steps, at_least(0),
        "steps of linear warm-up, in place of warmup_epochs if more than 0");
  visit("min_lr", c.min_lr, at_least(0), "final learning rate of cosine and linear");
}

/// [train]: length and method of training. fields() below documents the keys.
struct TrainConfig {
  std::string method = "supervised";
  Index epochs = 10;
  Index max_steps = 0;
  Index patience = 0;
  Index batch = 128;
  Index microbatch = 0;
  Index seed = 1;
  std::string dtype = "f32";
  double label_smoothing = 0.0;
  double dropout = 0.0;
  double drop_path = 0.0;
  double ema = 0.0;
  bool recompute = false;
  std::string on_nonfinite = "stop";
  Index checkpoint_steps = 0;
  bool log_steps = false;
  std::string init = "strict";
  bool init_head = false;
  std::string init_positions = "none";
  std::vector<std::string> init_skip = {};
  std::vector<std::string> init_parts = {"q", "k", "v"};
  std::string init_mechanism = "softmax";

  bool operator==(const TrainConfig&) const = default;
};

/// Returns the number of examples per microbatch for batches of `batch` examples. It depends on neither threads nor
/// processes, since it affects the bits of a training run.
constexpr Index microbatch_of(const TrainConfig& train, Index batch) {
  return train.microbatch > 0 ? train.microbatch : std::clamp<Index>((batch + 15) / 16, 1, 8);
}

/// Returns the number of examples per microbatch for batches of train.batch examples.
constexpr Index microbatch_of(const TrainConfig& train) { return microbatch_of(train, train.batch); }

/// Visits the keys of [train].
template <MaybeConst<TrainConfig> Config, class Visit>
void fields(Config& c, Visit&& visit) {
  visit("method", c.method, one_of({"supervised", "dino"}),
        "learn from labels, or without labels from a teacher ([dino])");
  visit("epochs", c.epochs, one_or_more(), "passes over the training set");
  visit("max_steps", c.max_steps, at_least(0), "stop after this number of steps, with a checkpoint; 0: no limit");
  visit("patience", c.patience, at_least(0), "epochs without improvement in validation before stopping; 0: never stop");
  visit("batch", c.batch, one_or_more(),
        "images per step; an epoch leaves out the last images if they do not fill a batch");
  visit("microbatch", c.microbatch, at_least(0),
        "images per pass through the model; with batch norm, per lane; 0: batch / 16, from 1 to 8");
  visit("seed", c.seed, at_least(0), "random seed of initial weights, order, augmentation and dropout");
  visit("dtype", c.dtype, one_of({"f32", "bf16", "f64"}), "number type; bf16: f32 with training products in bfloat16");
  visit("label_smoothing", c.label_smoothing, fraction(), "fraction of each label spread over all classes");
  visit("dropout", c.dropout, fraction(), "probability of dropping an activation");
  visit("drop_path", c.drop_path, fraction(), "probability of skipping the last block; lower for earlier blocks");
  visit("ema", c.ema, fraction(), "decay of the averaged weights; 0: no averaging");
  visit("recompute", c.recompute, anything(), "recompute blocks in the backward pass: less memory, more time");
  visit("on_nonfinite", c.on_nonfinite, one_of({"stop", "skip"}),
        "if a loss or gradient is not finite: stop, or skip and count the step");
  visit("checkpoint_steps", c.checkpoint_steps, at_least(0), "steps between checkpoints; 0: at the end of each epoch");
  visit("log_steps", c.log_steps, anything(), "write a line of metrics per step");
  visit("init", c.init, one_of({"strict", "matching"}),
        "with --init: require all tensors to match, or load those that match");
  visit("init_head", c.init_head, anything(),
        "with --init: a new classifier if the file's has a different number of classes");
  visit("init_positions", c.init_positions, Rule{.choices = {"none", "plain", "antialias"}, .if_true = "plain"},
        "with --init: interpolate positions of a different grid bicubically; true: plain");
  visit("init_skip", c.init_skip, anything(), "matching: tensors to leave out; * matches any text");
  visit("init_parts", c.init_parts, one_of({"q", "k", "v"}), "matching: parts of the qkv layers to load");
  visit("init_mechanism", c.init_mechanism, anything(), "matching: the mechanism of the file's qkv layers");
}

/// A training run; or a model, if everything but [model] and [attention] has its default.
struct Experiment {
  ModelConfig model;
  AttentionConfig attention;
  DataConfig data;
  OptimConfig optim;
  TrainConfig train;
  DinoConfig dino;

  /// Returns true if the model is trained by self-supervision.
  bool self_supervised() const { return train.method == "dino"; }

  bool operator==(const Experiment&) const = default;
};

/// Use of a key by a family, task or data set: `known` if it applies, `required` if it must be set.
struct KeyUse {
  bool known = true, required = false;
};

/// Returns the use of a key of [model], which depends on family and task.
KeyUse use_of(const ModelConfig& model, std::string_view key, const Rule& rule);

/// Return the use of a key of [data], which depends on the data set, and of a key of any other table.
KeyUse use_of(const DataConfig& data, std::string_view key, const Rule& rule);
template <class Config>
KeyUse use_of(const Config&, std::string_view, const Rule& rule) {
  return {true, rule.required};
}

/// Calls visit(name, table) for each table of an experiment file.
template <MaybeConst<Experiment> Config, class Visit>
void tables(Config& c, Visit&& visit) {
  visit("model", c.model);
  visit("attention", c.attention);
  visit("data", c.data);
  visit("optim", c.optim);
  visit("train", c.train);
  visit("dino", c.dino);
}

/// Returns true if the experiment uses the table of this name.
inline bool uses_table(const Experiment& experiment, std::string_view name) {
  return name != "dino" || experiment.train.method != "supervised";
}

/// Reads an experiment or a model file. A file's keys override those of its `base`, which may itself have a base. The
/// path of a base is relative to the file, to the working directory or to an installed directory (config/installed.h).
/// `sets` override the file's keys: each is "table.key=value", with a TOML value or plain text. Lists are replaced
/// whole. The result satisfies validate(). Throws Error for a table [attention.NAME] of a mechanism that the model does
/// not use; in a base file, such a table is dropped if the base's own model uses the mechanism.
Experiment load_experiment(const std::string& path, const std::vector<std::string>& sets = {});

/// Reads a run's configuration, and drops tables [attention.NAME] of unused mechanisms, written by earlier versions.
Experiment load_recorded(const std::string& path, const std::vector<std::string>& sets = {});

/// Invalid value of the key "table.key".
struct KeyError : Error {
  KeyError(std::string of, const std::string& what) : Error(what), key(std::move(of)) {}
  std::string key;
};

/// Throws KeyError if a single value is out of range, Error if values are inconsistent. Mechanisms and their options
/// are checked by the mechanisms.
void validate(const Experiment& experiment);

/// Returns the experiment as TOML, with every key that applies; load_experiment() reads the same experiment from it.
std::string to_toml(const Experiment& experiment);

/// Returns the values that to_toml() prints, by "table.key"; an option of one mechanism is "attention.NAME.key".
std::map<std::string, std::string> settings_of(const Experiment& experiment);

/// Returns the experiment with defaults for all settings that do not change the result of a finished run: the data's
/// location, record and verification, logging of steps, saving by steps, and the limit on steps (train.max_steps).
Experiment result_settings(Experiment experiment);

/// Returns a hash of result_settings(), 16 hexadecimal digits.
std::string configuration_hash(const Experiment& experiment);

}  // namespace heed
