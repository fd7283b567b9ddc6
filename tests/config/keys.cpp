// Keys by data set, family and task, and keys that have an effect only under a condition on other keys.
#include "heed/base/warnings.h"
#include "heed/config/experiment.h"
#include "heed/io/file.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>
#include <fmt/ranges.h>

#include <set>

using namespace heed;

namespace {

std::set<std::string> words_of(const std::string& text) {
  std::set<std::string> words;
  std::istringstream in(text);
  for (std::string word; in >> word;) words.insert(word);
  return words;
}

/// Returns the keys of a table, as an experiment prints them.
std::string keys_printed(const Experiment& x, const std::string& table) {
  std::set<std::string> keys;
  for (const auto& [key, value] : settings_of(x))
    if (key.starts_with(table + ".")) keys.insert(key.substr(table.size() + 1));
  return fmt::format("{}", fmt::join(keys, " "));
}
std::string sorted_words(const std::string& text) { return fmt::format("{}", fmt::join(words_of(text), " ")); }

const std::string a_model =
    "[model]\nimage = 8\nchannels = 1\npatch = 4\ndim = 16\ndepth = 2\nheads = 2\nhidden = 24\nclasses = 10\n";

/// Returns the warnings for `a_model` with these settings.
std::vector<std::string> warned(const std::vector<std::string>& sets) {
  const TemporaryDirectory directory;
  write_file(directory / "x.toml", a_model);
  take_warnings();
  load_experiment(directory / "x.toml", sets);
  return take_warnings();
}

}  // namespace

BOOST_AUTO_TEST_SUITE(config_keys)

BOOST_AUTO_TEST_CASE(each_data_set_has_its_keys) {
  const std::string images =
      "name path validation limit mean std resize crop_fraction interpolation shuffle augment crop_padding mixup_alpha "
      "cutmix_alpha erase_probability randaugment_ops randaugment_magnitude ";
  const std::string sequences = "name path limit shuffle augment ";
  for (const auto& [name, keys] :
       std::map<std::string, std::string>{{"mnist", images},
                                          {"fashion-mnist", images},
                                          {"cifar10", images},
                                          {"cifar100", images},
                                          {"folder", images + "orientation skip_bad"},
                                          {"scenes", "name path validation limit mean std shuffle source"},
                                          {"text", sequences + "stride windows"},
                                          {"listops", sequences},
                                          {"pairs", sequences},
                                          {"documents", sequences + "validation skip_bad header"},
                                          {"pixels", sequences + "validation source side grey levels"}}) {
    Experiment x;
    x.data.name = name;
    BOOST_TEST(keys_printed(x, "data") == sorted_words(keys), name);
  }
}

BOOST_AUTO_TEST_CASE(each_family_and_task_has_its_keys) {
  const std::string any = "family dim depth heads hidden qk_norm gate gate_act act ",
                    image = any + "image channels classes ",
                    adder = "linear ffn_act input_grad weight_grad weight_scale ",
                    tokens = any + adder + "task vocab context pos_embed ";
  const auto keys_of = [](const char* family, const char* task) {
    Experiment x;
    x.model.family = family, x.model.task = task;
    x.model.class_token = true;
    return keys_printed(x, "model");
  };
  BOOST_TEST(keys_of("vit", "") ==
             sorted_words(image + adder +
                          "patch pool class_token registers distilled embed_prefix pool_norm layer_scale "
                          "qkv_bias pre_norm norm_eps output pos_embed"));
  BOOST_TEST(keys_of("xcit", "") == sorted_words(image + "patch pos_embed layer_scale tokens_norm cls_depth "
                                                         "cls_attention lpi bn_group"));
  BOOST_TEST(keys_of("cvt", "") == sorted_words(image + "patch stride padding pool kv_stride qk_scale bn_group"));
  BOOST_TEST(keys_of("soft-pyramid", "") == sorted_words(image + "stride pool pos_embed stem bn_group"));
  BOOST_TEST(keys_of("sequence", "lm") == sorted_words(tokens + "start tied"));
  BOOST_TEST(keys_of("sequence", "classify") == sorted_words(tokens + "classes pool head"));
  BOOST_TEST(keys_of("sequence", "pair") == sorted_words(tokens + "classes pool head pair"));
}

// The table [dino] is printed for train.method = "dino" only.
BOOST_AUTO_TEST_CASE(a_teacher_has_a_table) {
  Experiment x;
  BOOST_TEST(keys_printed(x, "dino") == "");
  x.train.method = "dino";
  BOOST_TEST(words_of(keys_printed(x, "dino")).size() == 15u);
}

// If a key's condition is not met, a warning names the key; if it is met, there is no warning.
BOOST_AUTO_TEST_CASE(a_key_has_an_effect_under_its_condition_only) {
  struct Need {
    std::string set;
    std::vector<std::string> without, with;  ///< further settings
    std::string need;                        ///< the condition in words
  };
  const std::vector<std::string> dino{"train.method=dino", "data.augment=['flip']", "dino.local_crops=0"},
      views{"train.method=dino", "data.augment=['flip']", "dino.local_crops=2", "dino.local_size=4"};
  const std::string sgd = "optim.name=sgd", adder = "model.linear=adder", matching = "train.init=matching";
  const std::string for_adder = "model.linear = \"adder\"", for_crop = "data.resize = \"crop\"",
                    for_adamw = "optim.name = \"adamw\"", for_matching = "train.init = \"matching\"",
                    for_min_lr = "optim.schedule = \"cosine\" or \"linear\"",
                    for_warmup = "an optim.schedule other than \"constant\"",
                    for_schedule = "optim.warmup_epochs below train.epochs", two = "train.epochs=2";
  for (const Need& need : std::vector<Need>{
           {"model.embed_prefix=false",
            {"model.pool=mean"},
            {"model.pool=mean", "model.registers=2"},
            "model.pos_embed = true and a token before the patches"},
           {"model.gate_act=silu", {}, {"model.gate=true"}, "model.gate = true"},
           {"model.ffn_act=relu", {}, {adder}, for_adder},
           {"model.input_grad=sign", {}, {adder}, for_adder},
           {"model.weight_grad=sign", {}, {adder}, for_adder},
           {"model.weight_scale=adaptive", {}, {adder}, for_adder},
           {"data.crop_fraction=0.77", {"data.resize=squash"}, {"data.resize=crop"}, for_crop},
           {"data.interpolation=bilinear", {"data.resize=squash"}, {"data.resize=crop"}, for_crop},
           {"data.crop_padding=3", {"data.augment=['flip']"}, {"data.augment=['crop']"}, "\"crop\" in data.augment"},
           {"data.mixup_alpha=0.31",
            {"data.augment=['cutmix']"},
            {"data.augment=['mixup']"},
            "\"mixup\" in data.augment"},
           {"data.cutmix_alpha=0.31",
            {"data.augment=['mixup']"},
            {"data.augment=['cutmix']"},
            "\"cutmix\" in data.augment"},
           {"data.erase_probability=0.31", {}, {"data.augment=['erase']"}, "\"erase\" in data.augment"},
           {"data.randaugment_ops=5", {}, {"data.augment=['randaugment']"}, "\"randaugment\" in data.augment"},
           {"data.randaugment_magnitude=5.5", {}, {"data.augment=['randaugment']"}, "\"randaugment\" in data.augment"},
           {"optim.momentum=0.56", {}, {sgd}, "optim.name = \"sgd\""},
           {"optim.betas=[0.7,0.81]", {sgd}, {}, for_adamw},
           {"optim.eps=1e-5", {sgd}, {}, for_adamw},
           {"optim.min_lr=1e-5", {"optim.schedule=rsqrt"}, {"optim.schedule=linear"}, for_min_lr},
           {"optim.min_lr=2e-5", {"optim.schedule=constant"}, {"optim.schedule=cosine"}, for_min_lr},
           {"optim.min_lr=3e-5", {two, "optim.warmup_epochs=2"}, {two, "optim.warmup_epochs=1.9"}, for_schedule},
           {"optim.schedule=linear", {"train.epochs=1"}, {"train.epochs=1", "optim.warmup_steps=3"}, for_schedule},
           {"optim.warmup_epochs=7", {two, "optim.schedule=constant"}, {two, "optim.schedule=rsqrt"}, for_warmup},
           {"optim.warmup_steps=19", {"optim.schedule=constant"}, {"optim.schedule=rsqrt"}, for_warmup},
           {"optim.warmup_epochs=5", {"optim.schedule=constant"}, {"optim.schedule=linear"}, for_warmup},
           {"train.init_head=true", {matching}, {}, "train.init = \"strict\""},
           {"train.init_skip=['a']", {}, {matching}, for_matching},
           {"train.init_parts=['q']", {}, {matching}, for_matching},
           {"train.init_mechanism=sima", {}, {matching}, for_matching},
           {"dino.local_scale=[0.11,0.2]", dino, views, "dino.local_crops above 0"},
           {"dino.teacher_temp_start=0.051",
            views,
            {views[0], views[1], views[2], views[3], "dino.teacher_temp_warmup=2"},
            "dino.teacher_temp_warmup above 0"},
       }) {
    std::vector<std::string> without = need.without, with = need.with;
    without.push_back(need.set), with.push_back(need.set);
    const std::string key = need.set.substr(0, need.set.find('='));
    const std::vector<std::string> lines = warned(without);
    BOOST_TEST(lines.size() == 1u, need.set << ": " << fmt::format("{}", fmt::join(lines, "; ")));
    for (const std::string& line : lines) {
      BOOST_TEST(line.starts_with("--set: " + key + " = "), line);
      BOOST_TEST(line.ends_with(" has no effect; it needs " + need.need), line);
    }
    for (const std::string& line : warned(with)) BOOST_ERROR(need.set << " with effect: " << line);
  }
  std::vector<std::string> sized = dino;
  sized.push_back("dino.local_size=4");
  BOOST_TEST(warned(sized).size() == 1u);
}

BOOST_AUTO_TEST_SUITE_END()
