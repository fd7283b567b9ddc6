// Every key of an experiment changes a run of the self-test, or is on a list of exceptions: no key can lose its effect
// undetected. None of the changed settings causes a warning.
#include "heed/base/warnings.h"
#include "heed/config/experiment.h"
#include "heed/io/file.h"
#include "heed/selftest/selftest.h"
#include "support/training.h"

#include <filesystem>
#include <set>

using namespace heed;
using namespace heed::test;

namespace {

/// A self-test run, and a key with a value other than the run's.
struct Effect {
  const char* run;
  const char* key;
  const char* value;
  std::vector<std::string> beside{};  ///< settings of both runs
};

const Effect effects[] = {
    {"grey", "model.image", "56", {"data.resize=true"}},
    {"grey", "model.channels", "3", {"data.resize=true"}},
    {"grey", "model.patch", "7"},
    {"grey", "model.dim", "48"},
    {"grey", "model.depth", "3"},
    {"grey", "model.heads", "4"},
    {"grey", "model.hidden", "80"},
    {"grey", "model.pool", "mean"},
    {"grey", "model.class_token", "true", {"model.pool=mean"}},
    {"grey", "model.registers", "2"},
    {"grey", "model.distilled", "true"},
    {"grey", "model.embed_prefix", "false"},
    {"grey", "model.pool_norm", "after", {"model.pool=mean"}},
    {"grey", "model.layer_scale", "0.1"},
    {"grey", "model.qkv_bias", "false"},
    {"grey", "model.pre_norm", "true"},
    {"grey", "model.norm_eps", "0.1"},
    {"published", "data.crop_fraction", "0.5"},
    {"published", "data.interpolation", "bicubic"},
    {"grey", "model.pos_embed", "false"},
    {"grey", "model.qk_norm", "true"},
    {"grey", "model.gate", "true"},
    {"grey", "model.gate_act", "silu", {"model.gate=true"}},
    {"grey", "model.act", "relu"},
    {"grey", "model.linear", "adder"},
    {"grey", "model.ffn_act", "gelu", {"model.linear=adder"}},
    {"grey", "model.input_grad", "sign", {"model.linear=adder"}},
    {"grey", "model.weight_grad", "sign", {"model.linear=adder"}},
    {"grey", "model.weight_scale", "adaptive", {"model.linear=adder"}},
    {"grey", "attention.mechanism", "sima"},
    {"grey", "data.validation", "6"},
    {"grey", "data.limit", "14"},
    {"grey", "data.mean", "[0.3]"},
    {"grey", "data.std", "[0.5]"},
    {"grey", "data.shuffle", "false"},
    {"grey", "data.augment", "[\"crop\"]"},
    {"grey", "data.crop_padding", "2", {"data.augment=[\"crop\"]"}},
    {"grey", "data.mixup_alpha", "0.3", {"data.augment=[\"mixup\"]"}},
    {"grey", "data.cutmix_alpha", "0.3", {"data.augment=[\"cutmix\"]"}},
    {"grey", "data.erase_probability", "1", {"data.augment=[\"erase\"]"}},
    {"grey", "data.randaugment_ops", "1", {"data.augment=[\"randaugment\"]"}},
    {"grey", "data.randaugment_magnitude", "3", {"data.augment=[\"randaugment\"]"}},
    {"grey", "optim.name", "sgd"},
    {"grey", "optim.lr", "0.1"},
    {"grey", "optim.betas", "[0.5, 0.9]"},
    {"grey", "optim.eps", "0.1"},
    {"grey", "optim.weight_decay", "0.5"},
    {"grey", "optim.weight_decay_end", "1"},
    {"grey", "optim.momentum", "0.5", {"optim.name=sgd"}},
    {"grey", "optim.clip", "0.01", {"optim.name=sgd"}},
    {"grey", "optim.schedule", "constant"},
    {"grey", "optim.warmup_epochs", "0"},
    {"grey", "optim.warmup_steps", "5"},
    {"grey", "optim.min_lr", "0.005", {"optim.warmup_epochs=0"}},
    {"grey", "train.epochs", "1"},
    {"grey", "train.max_steps", "2"},
    {"grey", "train.patience", "1", {"train.epochs=6", "optim.lr=0"}},
    {"grey", "train.batch", "6"},
    {"grey", "train.seed", "2"},
    {"grey", "train.dtype", "f64"},
    {"grey", "train.label_smoothing", "0.1"},
    {"grey", "train.dropout", "0.2"},
    {"grey", "train.drop_path", "0.5"},
    {"grey", "train.ema", "0.9"},
    {"xcit", "model.layer_scale", "0.1"},
    {"xcit", "model.tokens_norm", "false"},
    {"xcit", "model.cls_depth", "1"},
    {"xcit", "model.cls_attention", "sima"},
    {"xcit", "model.lpi", "false"},
    {"cvt", "model.stride", "[4, 2]"},
    {"cvt", "model.padding", "[1, 1]"},
    {"cvt", "model.kv_stride", "1"},
    {"cvt", "model.qk_scale", "width"},
    {"cvt-width", "model.bn_group", "2"},
    {"soft-pyramid", "model.stem", "16"},
    {"documents", "model.vocab", "300"},
    {"text", "model.context", "90"},
    {"text", "model.start", "false"},
    {"text", "model.tied", "false"},
    {"text", "data.stride", "10", {"model.context=20"}},
    {"text", "data.windows", "14"},
    {"pairs", "model.head", "linear"},
    {"pairs", "model.pair", "concat"},
    {"dino", "dino.out_dim", "60"},
    {"dino", "dino.hidden", "40"},
    {"dino", "dino.bottleneck", "24"},
    {"dino", "dino.norm_last_layer", "false"},
    {"dino", "dino.freeze_last_layer", "1"},
    {"dino", "dino.local_crops", "1"},
    {"dino", "dino.global_scale", "[0.5, 0.9]"},
    {"dino", "dino.local_scale", "[0.1, 0.3]"},
    {"dino", "dino.local_size", "8"},
    {"dino", "dino.student_temp", "0.2"},
    {"dino", "dino.teacher_temp", "0.07"},
    {"dino", "dino.teacher_temp_start", "0.02", {"dino.teacher_temp_warmup=2"}},
    {"dino", "dino.teacher_temp_warmup", "2", {"dino.teacher_temp_start=0.02"}},
    {"dino", "dino.center_momentum", "0.5"},
    {"dino", "dino.ema", "0.9"},
};

/// Keys that affect only output, speed, memory or the location of data. Microbatches change only rounding.
const std::set<std::string> without_numbers{"data.path", "train.microbatch", "train.recompute",
                                            "train.checkpoint_steps", "train.log_steps"};

/// Keys tested elsewhere with other data, weights or losses: they determine the kind of a run, its input, and its end.
const std::set<std::string> tested_apart{
    "model.family",        "model.task",       "model.output",         "model.classes",   "data.name",
    "data.resize",         "data.orientation", "data.skip_bad",        "data.header",     "data.source",
    "data.side",           "data.grey",        "data.levels",          "train.method",    "train.on_nonfinite",
    "train.init",          "train.init_head",  "train.init_positions", "train.init_skip", "train.init_parts",
    "train.init_mechanism"};

/// Returns the metrics and best weights of the self-test run that `effect` names, with its settings and `sets`; checks
/// that `sets` cause no warning.
std::string result_of(const Workshop& workshop, const Effect& effect, const std::vector<std::string>& sets) {
  const std::string file = workshop / effect.run + ".toml";
  std::vector<std::string> all{"data.path=" + selftest_data(load_experiment(file).data.name, workshop / "")};
  for (const auto& more : {effect.beside, sets}) all.insert(all.end(), more.begin(), more.end());
  take_warnings();
  const Experiment x = load_experiment(file, all);
  BOOST_TEST((sets.empty() || take_warnings().empty()), effect.run << " " << effect.key);
  const std::string directory = workshop / "run";
  std::filesystem::remove_all(directory);
  run(x, directory);
  std::string result;
  for (const std::string& row : metrics_of(directory)) result += row + "\n";
  const std::string best = directory + "/best.safetensors";
  return std::filesystem::exists(best) ? result + read_file(best) : result;
}

/// Returns all keys of all kinds of experiments.
std::set<std::string> all_keys() {
  std::set<std::string> keys;
  for (const auto& [family, number] : family_names) {
    Experiment x;
    x.model.family = family;
    tables(x, [&](std::string_view table, const auto& config) {
      fields(config, [&](std::string_view key, const auto&, const Rule&, std::string_view) {
        keys.insert(fmt::format("{}.{}", table, key));
      });
    });
  }
  return keys;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(keys)

BOOST_AUTO_TEST_CASE(each_changes_a_run) {
  const Workshop workshop;
  prepare_selftest(workshop / "");
  std::set<std::string> left = all_keys();
  for (const Effect& effect : effects) {
    left.erase(effect.key);
    const std::string setting = fmt::format("{}={}", effect.key, effect.value);
    BOOST_TEST((result_of(workshop, effect, {}) != result_of(workshop, effect, {setting})),
               effect.run << " does not depend on " << setting);
  }
  for (const std::string& key : left)
    BOOST_TEST(without_numbers.contains(key) + tested_apart.contains(key) == 1u, key << " changes no run");
}

BOOST_AUTO_TEST_SUITE_END()
