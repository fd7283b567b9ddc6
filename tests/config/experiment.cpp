// Configuration: defaults, precedence, and error messages.
#include "heed/config/experiment.h"
#include "heed/config/installed.h"

#include "heed/io/file.h"
#include "heed/base/random.h"
#include "heed/base/suggest.h"
#include "support/temporary.h"

#include <boost/test/unit_test.hpp>

using namespace heed;

namespace {

const std::string tiny =
    "[model]\nimage = 8\nchannels = 1\npatch = 4\ndim = 8\ndepth = 2\nheads = 2\nhidden = 16\nclasses = 3\n";

// Loads `text` as a file.
Experiment load(const std::string& text, const std::vector<std::string>& sets = {}) {
  const TemporaryDirectory directory;
  write_file(directory / "x", text);
  return load_experiment(directory / "x", sets);
}

// Returns the error for `tiny` followed by `text`, after the file's name; line 10 is the first of `text`.
std::string error(const std::string& text, const std::vector<std::string>& sets = {}) {
  const TemporaryDirectory directory;
  write_file(directory / "x", tiny + text);
  return error_of([&] { load_experiment(directory / "x", sets); }, directory / "x");
}

std::string set_error(const std::string& set) { return error("", {set}); }

}  // namespace

BOOST_AUTO_TEST_SUITE(config)

BOOST_AUTO_TEST_CASE(what_is_not_written_keeps_its_default) {
  const Experiment e = load(tiny);
  Experiment defaults;
  defaults.model = e.model;
  BOOST_TEST((e == defaults));
  BOOST_TEST(e.model.hidden == 16);
  BOOST_TEST(e.model.pool == "cls");
  BOOST_TEST(e.attention.mechanism.front() == "softmax");
  BOOST_TEST(e.data.validation == 5000);
  BOOST_TEST(e.optim.betas[1] == 0.999);
  BOOST_TEST(e.train.batch == 128);
}

// By default, sequences and scenes are not augmented; a teacher's views are augmented if they have colours.
BOOST_AUTO_TEST_CASE(default_augmentations_depend_on_data_and_method) {
  using Names = std::vector<std::string>;
  const auto augment = [](const Names& sets) { return load(tiny, sets).data.augment; };
  BOOST_TEST((augment({}) == Names{"crop", "flip"}));
  BOOST_TEST((augment({"data.name=folder"}) == Names{"crop", "flip"}));
  for (const char* name : {"text", "listops", "documents", "pairs", "pixels"})
    BOOST_TEST(augment({std::string("data.name=") + name}).empty(), name);
  BOOST_TEST(augment({"data.name=scenes", "model.output=tokens"}).empty());
  Names dino{"train.method=dino", "dino.local_crops=0"};
  BOOST_TEST(augment(dino).empty());
  dino.push_back("model.channels=3");
  BOOST_TEST((augment(dino) == Names{"flip", "jitter", "grey", "blur", "solarise"}));
  dino.push_back("data.augment=['blur']");
  BOOST_TEST((augment(dino) == Names{"blur"}));
  BOOST_TEST((augment({"data.augment=['erase']"}) == Names{"erase"}));
}

// Runs of heed 0.2.0, whose files lack data.orientation, were trained on images as they are stored.
BOOST_AUTO_TEST_CASE(runs_of_earlier_versions_did_not_turn_images) {
  const TemporaryDirectory directory;
  const std::string path = directory / "x";
  write_file(path, tiny + "[data]\nname = \"folder\"\n");
  BOOST_TEST(load_experiment(path).data.orientation);
  BOOST_TEST(!load_recorded(path).data.orientation);
  BOOST_TEST(load_recorded(path, {"data.orientation=true"}).data.orientation);
  write_file(path, tiny + "[data]\nname = \"folder\"\norientation = true\n");
  BOOST_TEST(load_recorded(path).data.orientation);
  write_file(path, tiny + "[data]\nname = \"mnist\"\n");
  BOOST_TEST(load_recorded(path, {"data.name=folder"}).data.orientation);
}

BOOST_AUTO_TEST_CASE(every_file_in_the_repository_loads) {
  int files = 0;
  for (const char* directory : {"models", "experiments"})
    for (const auto& file : std::filesystem::directory_iterator(directory))
      if (file.path().extension() == ".toml") {
        ++files;
        BOOST_TEST(error_of([&] { load_experiment(file.path()); }) == "no error", file.path());
      }
  BOOST_TEST(files >= 8);
  BOOST_TEST(load_experiment("experiments/mnist.toml").model.dim == 64);
}

BOOST_AUTO_TEST_CASE(base_then_file_then_command_line_key_by_key) {
  const TemporaryDirectory directory;
  const auto path = [&](const char* name) { return (directory / name).string(); };
  write_file(path("a"), tiny +
                            "[attention]\nmechanism = \"sima\"\nnorm = \"l1\"\n[attention.sima]\norder = \"auto\"\n"
                            "[optim]\nlr = 1\nclip = 2\nbetas = [0.5, 0.6]\n");
  write_file(path("b"),
             fmt::format("base = \"{}\"\n[model]\ndim = 16\n[optim]\nlr = 3\nbetas = [0.7, 0.8]\n", path("a")));
  write_file(path("c"),
             fmt::format("base = \"{}\"\n[attention.sima]\norder = \"qk_first\"\n[optim]\nlr = 4\n", path("b")));
  const Experiment e =
      load_experiment(path("c"), {"optim.lr=5", "optim.lr=6", "attention.causal=true", "attention.sima.scale=0.10"});
  BOOST_TEST(e.model.dim == 16);
  BOOST_TEST(e.model.hidden == 16);
  BOOST_TEST(e.optim.lr == 6);
  BOOST_TEST(e.optim.clip == 2);
  BOOST_TEST(e.optim.betas == (std::vector<double>{0.7, 0.8}), boost::test_tools::per_element());
  BOOST_TEST(e.attention.options.at("norm").text == "l1");
  BOOST_TEST(e.attention.options.at("norm").where == path("a") + ":12");
  BOOST_TEST(e.attention.options.at("causal").text == "true");
  BOOST_TEST(e.attention.options.at("causal").where == "--set");
  BOOST_TEST(e.attention.per_mechanism.at("sima").at("order").text == "qk_first");
  BOOST_TEST(e.attention.per_mechanism.at("sima").at("scale").text == "0.1");

  BOOST_TEST(load_experiment(path("c"), {"base=" + path("a")}).optim.betas[0] == 0.5);
}

BOOST_AUTO_TEST_CASE(set_takes_toml_or_text) {
  const Experiment e = load(tiny, {"data.path=/some where/x=y", "data.augment=[]", "model.linear=['mul', \"adder\"]",
                                   "train.log_steps=true", "attention.mechanism=sima", "data.mean=[0]",
                                   "train.dtype=\"f64\"", "optim.weight_decay=1", "attention.rank=12"});
  BOOST_TEST(e.data.path == "/some where/x=y");
  BOOST_TEST(e.data.augment.empty());
  BOOST_TEST(e.model.linear == (std::vector<std::string>{"mul", "adder"}), boost::test_tools::per_element());
  BOOST_TEST(e.train.log_steps);
  BOOST_TEST(e.attention.mechanism.front() == "sima");
  BOOST_TEST(e.data.mean[0] == 0);
  BOOST_TEST(e.train.dtype == "f64");
  BOOST_TEST(e.optim.weight_decay == 1);
  BOOST_TEST(e.attention.options.at("rank").text == "12");
  BOOST_TEST(load(tiny, {"data.path=a\nmodel.dim = 7"}).data.path == "a\nmodel.dim = 7");
  BOOST_TEST(load(tiny, {"data.path="}).data.path.empty());
  // Two keys accept a boolean in place of a name.
  BOOST_TEST(load(tiny, {"data.resize=true"}).data.resize == "squash");
  BOOST_TEST(load(tiny, {"data.resize=crop", "data.resize=false"}).data.resize == "none");
  BOOST_TEST(load(tiny, {"train.init_positions=true"}).train.init_positions == "plain");
  BOOST_TEST(load(tiny, {"train.init_positions=antialias", "train.init_positions=false"}).train.init_positions ==
             "none");
  BOOST_TEST(load(tiny, {"attention.causal=false"}).attention.options.at("causal").text == "false");
}

BOOST_AUTO_TEST_CASE(what_is_printed_loads_again) {
  Experiment e = load(tiny);
  BOOST_TEST((load(to_toml(e)) == e));
  e.data.path = "a \"b\" \\ \n\x7f \xc3\xa9";
  e.data.augment = {};
  e.data.mean = {1.0 / 3};
  e.optim.lr = 1e-30;
  e.optim.min_lr = 1.2345678901234567e-45;
  e.optim.clip = 1e38;
  e.optim.eps = 123456789.0;
  e.train.seed = std::numeric_limits<Index>::max();
  e.model.linear = {"mul", "adder"};
  e.attention.mechanism = {"sima", "soft"};
  for (const char* text : {"l1", "1", "1.0", "1e-3", "0.001", "-0", "007", "true", "inf", "", "1979-05-27", "a\"b"})
    e.attention.options[fmt::format("option {}", text)].text = text;
  e.attention.per_mechanism["soft"]["ratio"].text = "2";
  const std::string text = to_toml(e);
  const Experiment again = load(text);
  BOOST_TEST((again == e));
  BOOST_TEST(to_toml(again) == text);
  BOOST_TEST(text.find("mechanism = [\"sima\", \"soft\"]") != std::string::npos);
  BOOST_TEST(text.find("ratio = 2\n") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(unknown_keys_suggest_the_nearest) {
  BOOST_TEST(error("[optim]\nlearning_rate = 1\n") ==
             ":11: unknown key 'optim.learning_rate'; did you mean 'optim.lr'?");
  BOOST_TEST(error("[optim]\nweigth_decay = 1\n") ==
             ":11: unknown key 'optim.weigth_decay'; did you mean 'optim.weight_decay'?");
  BOOST_TEST(error("[train]\nlr = 1\n") == ":11: unknown key 'train.lr'; did you mean 'optim.lr'?");
  BOOST_TEST(error("[train]\nxyzzy = 1\n") ==
             ":11: unknown key 'train.xyzzy'; expected one of method, epochs, max_steps, patience, batch, microbatch, "
             "seed, dtype, "
             "label_smoothing, dropout, drop_path, ema, recompute, on_nonfinite, checkpoint_steps, log_steps, init, "
             "init_head, init_positions, init_skip, init_parts, init_mechanism");
  BOOST_TEST(error("[optimizer]\nlr = 1\n") == ":10: unknown table 'optimizer'; did you mean 'optim'?");
  BOOST_TEST(set_error("lr=1") == "--set: unknown key 'lr'; did you mean 'optim.lr'?");
  BOOST_TEST(set_error("model.dims=1") == "--set: unknown key 'model.dims'; did you mean 'model.dim'?");
  BOOST_TEST(set_error("optim.adam.lr=1") ==
             "--set: unknown key 'optim.adam'; expected one of name, lr, betas, eps, weight_decay, weight_decay_end, "
             "momentum, clip, "
             "schedule, warmup_epochs, warmup_steps, min_lr");
}

// Versions before 0.3.0 had train.piece instead of train.microbatch.
BOOST_AUTO_TEST_CASE(a_former_key_is_the_same_key) {
  const Experiment expected = load(tiny + "[train]\nmicrobatch = 4\n");
  BOOST_TEST(expected.train.microbatch == 4);
  BOOST_TEST((load(tiny + "[train]\npiece = 4\n") == expected));
  BOOST_TEST((load(tiny, {"train.piece=4"}) == expected));
  BOOST_TEST((load(tiny + "[train]\npiece = 2\n", {"train.microbatch=4"}) == expected));
  BOOST_TEST((load(tiny + "[train]\nmicrobatch = 2\n", {"train.piece=4"}) == expected));
  BOOST_TEST(error("[train]\nmicrobatch = 2\npiece = 4\n") ==
             ":12: 'train.piece' and 'train.microbatch' are the same key; set only one of them");
  BOOST_TEST(error("[train]\npiece = 0\n") == error("[train]\nmicrobatch = 0\n"));
  BOOST_TEST(error("[train]\npiece = \"a\"\n") == ":11: 'train.microbatch': expected an integer, found a string");
  BOOST_TEST(error("[optim]\npiece = 4\n").find("unknown key 'optim.piece'") != std::string::npos);
}

// The hash is that of version 0.2.0: results in the repository are identified by such hashes.
BOOST_AUTO_TEST_CASE(configurations_keep_their_hashes) {
  BOOST_TEST(configuration_hash(load(tiny)) == "3cf0d26f51b9c149");
}

// Hashes equal those of version 0.2.0, which wrote fewer keys, "train.piece" for microbatch, and booleans for
// data.resize and train.init_positions. model.class_token is omitted if model.pool implies its value.
BOOST_AUTO_TEST_CASE(former_spellings_keep_their_hashes) {
  const auto former = [](const std::map<std::string, std::string>& spellings) {
    std::map<std::string, std::string> lines = settings_of(result_settings(load(tiny)));
    for (const char* later : {"model.registers", "model.distilled", "model.embed_prefix", "model.pool_norm",
                              "model.layer_scale", "model.qkv_bias", "model.pre_norm", "model.norm_eps",
                              "data.crop_fraction", "data.interpolation", "train.microbatch"})
      BOOST_TEST(lines.erase(later) == 1u, later);
    lines["train.piece"] = "8", lines["data.resize"] = lines["train.init_positions"] = "false";
    for (const auto& [key, value] : spellings) lines[key] = value;
    std::string text;
    for (const auto& [key, value] : lines) text += key + " = " + value + "\n";
    return fmt::format("{:016x}", RandomStream().derive(text).bits(0));
  };
  const auto now = [](const std::vector<std::string>& sets) { return configuration_hash(load(tiny, sets)); };
  BOOST_TEST(former({}) == "3cf0d26f51b9c149");
  BOOST_TEST(now({"data.resize=squash"}) == former({{"data.resize", "true"}}));
  BOOST_TEST(now({"data.resize=crop"}) == former({{"data.resize", "\"crop\""}}));
  BOOST_TEST(now({"train.init_positions=plain"}) == former({{"train.init_positions", "true"}}));
  BOOST_TEST(now({"train.init_positions=antialias"}) == former({{"train.init_positions", "\"antialias\""}}));
  BOOST_TEST(now({"train.microbatch=4"}) == former({{"train.piece", "4"}}));
  BOOST_TEST(now({"model.class_token=true"}) == former({}));
  BOOST_TEST(now({"model.pool=mean", "model.class_token=false"}) == former({{"model.pool", "\"mean\""}}));
  BOOST_TEST(now({"model.pool=mean", "model.class_token=true"}) ==
             former({{"model.pool", "\"mean\""}, {"model.class_token", "true"}}));
}

BOOST_AUTO_TEST_CASE(a_table_belongs_to_a_method) {
  BOOST_TEST(error("[dino]\nema = 0.9\n") == ":11: [dino] is for train.method = \"dino\", not \"supervised\"");
  BOOST_TEST(error("[train]\nmethod = \"dinos\"\n[dino]\nema = 0.9\n") ==
             ":11: [train] method = 'dinos'; did you mean 'dino'?");
  BOOST_TEST(error("[train]\nmethod = \"dino\"\n[dino]\nema = 2\n") ==
             ":13: [dino] ema = 2; expected at least 0 and at most 1");
}

// A table for a mechanism that no block has would have no effect, so it is an error, except in a base.
BOOST_AUTO_TEST_CASE(options_of_a_mechanism_need_a_block_with_it) {
  BOOST_TEST(error("[attention.sima]\nscale = 2\n") ==
             ":10: 'attention.sima': no block uses this mechanism; expected one of softmax");
  BOOST_TEST(error("[attention]\nmechanism = \"sima\"\n[attention.simma]\nscale = 2\n") ==
             ":12: 'attention.simma': no block uses this mechanism; did you mean 'sima'?");
  BOOST_TEST(set_error("attention.aft.rank=2") ==
             "--set: 'attention.aft': no block uses this mechanism; expected one of softmax");
  const Experiment both = load(tiny + "[attention.sima]\nscale = 2\n", {"attention.mechanism=[\"sima\",\"soft\"]"});
  BOOST_TEST(both.attention.per_mechanism.at("sima").at("scale").text == "2");

  const TemporaryDirectory directory;
  const auto path = [&](const char* name) { return (directory / name).string(); };
  write_file(path("base"), tiny + "[attention]\nmechanism = \"sima\"\n[attention.sima]\nscale = 2\n");
  const std::string base = fmt::format("base = \"{}\"\n[attention]\nmechanism = \"soft\"\n", path("base"));
  write_file(path("other"), base);
  BOOST_TEST(load_experiment(path("other")).attention.per_mechanism.empty());
  BOOST_TEST(load_experiment(path("other"), {"attention.mechanism=sima"}).attention.per_mechanism.size() == 1u);
  write_file(path("wrong"), base + "[attention.sima]\nscale = 3\n");
  BOOST_TEST(error_of([&] { load_experiment(path("wrong")); }, path("wrong")) ==
             ":4: 'attention.sima': no block uses this mechanism; expected one of soft");
}

// Runs of earlier versions also recorded options that the base set for a different mechanism.
BOOST_AUTO_TEST_CASE(a_recorded_configuration_may_hold_options_of_other_mechanisms) {
  const TemporaryDirectory directory;
  write_file(directory / "x", tiny + "[attention.sima]\nscale = 2\n");
  BOOST_TEST(load_recorded(directory / "x").attention.per_mechanism.empty());
  BOOST_TEST(error_of([&] { load_recorded(directory / "x", {"attention.sima.scale=3"}); }) ==
             "--set: 'attention.sima': no block uses this mechanism; expected one of softmax");
}

BOOST_AUTO_TEST_CASE(another_data_set_takes_the_place_of_a_recorded_one) {
  const TemporaryDirectory directory;
  write_file(directory / "x", tiny + "[data]\nname = \"pixels\"\nsource = \"mnist\"\n");
  BOOST_TEST(load_recorded(directory / "x", {"data.name=mnist"}).data.name == "mnist");
  BOOST_TEST(error_of([&] {
               load_recorded(directory / "x", {"data.name=mnist", "data.source=mnist"});
             }) == "--set: [data] source is not a key of name = \"mnist\"");
}

BOOST_AUTO_TEST_CASE(wrong_types_say_expected_and_found) {
  BOOST_TEST(error("[train]\nbatch = 1.5\n") == ":11: 'train.batch': expected an integer, found a float");
  BOOST_TEST(error("[train]\nlog_steps = 1\n") == ":11: 'train.log_steps': expected true or false, found an integer");
  BOOST_TEST(error("[data]\nmean = 0.5\n") == ":11: 'data.mean': expected a list of numbers, found a float");
  BOOST_TEST(error("[data]\naugment = [1]\n") ==
             ":11: 'data.augment': expected a list of strings, found an integer as item 1");
  BOOST_TEST(error("[attention]\nmechanism = 3\n") ==
             ":11: 'attention.mechanism': expected a string or a list of strings, found an integer");
  BOOST_TEST(error("[attention]\nrank = [1]\n") ==
             ":11: 'attention.rank': expected a string, number or boolean, found a list");
  BOOST_TEST(error("[attention.sima.norm]\nx = 1\n") ==
             ":10: 'attention.sima.norm': expected a string, number or boolean, found a table");
  BOOST_TEST(set_error("train=3") == "--set: 'train': expected a table, found an integer");
  BOOST_TEST(set_error("data.path=3") == "--set: 'data.path': expected a string, found an integer");
  BOOST_TEST(set_error("train.seed=now") == "--set: 'train.seed': expected an integer, found a string");
  BOOST_TEST(set_error("train.epochs=1979-05-27") ==
             "--set: 'train.epochs': expected an integer, found a date or time");
  BOOST_TEST(set_error("model.dim=true") == "--set: 'model.dim': expected an integer, found a boolean");
  for (const char* image : {"[8]", "[8, 8, 8]"})
    BOOST_TEST(set_error(fmt::format("model.image={}", image)) ==
               "--set: 'model.image': expected an integer, or a list of height and width, found a list");
}

BOOST_AUTO_TEST_CASE(files_that_are_no_experiment) {
  BOOST_TEST(error("[model]\n").starts_with(":10: not valid TOML: "));
  BOOST_TEST(error("[[\n") == ": not valid TOML: a key or value is incomplete");
  BOOST_TEST(error("[train]\nbatch = \n").starts_with(":11: not valid TOML: "));
  BOOST_TEST(error("\xff") == ":9: not valid TOML: Encountered invalid utf-8 sequence");
  BOOST_TEST(error("#\xff") == ":10: not valid TOML: Encountered invalid utf-8 sequence");
  BOOST_TEST(error_of([] { load_experiment("none.toml"); }) == "none.toml: cannot open: No such file or directory");
  BOOST_TEST(error_of([] {
               load("");
             }).ends_with("x: [model] lacks image, channels, patch, dim, depth, heads, hidden, classes"));
  for (const char* set : {"", "=", "model.dim", "a b=1", "[model]=1"})
    BOOST_TEST(set_error(set) == fmt::format("--set '{}': expected table.key=value", set));
  BOOST_TEST(set_error("model..dim=1").starts_with("--set 'model..dim=1': "));
}

BOOST_AUTO_TEST_CASE(keys_have_few_parts) {
  std::string path = "a";
  for (int i = 1; i < 16; ++i) path += ".a";
  const std::string longer = path + " .'a.a' . \"a\"", refusal = ":10: not valid TOML: a key of more than 16 parts";
  for (const std::string text : {"[{}]\n", "{} = 1\n", "a = [0.5, {{ {} = 1.5 }}]\n", "[[{}]]\n"}) {
    BOOST_TEST(error(fmt::format(fmt::runtime(text), path)).starts_with(":10: unknown "));
    BOOST_TEST(error(fmt::format(fmt::runtime(text), longer)) == refusal);
  }
  std::string endless = "a";
  for (int i = 0; i < 200'000; ++i) endless += ".a";
  BOOST_TEST(error(endless + " = 1\n") == refusal);
  BOOST_TEST(error("a = " + std::string(200'000, '[')).starts_with(":10: not valid TOML: "));
}

// In each of these texts, the TOML library checks whether a character beyond ASCII is a space, with undefined
// behaviour; heed works around this.
BOOST_AUTO_TEST_CASE(letters_beyond_ascii_stand_in_strings_and_comments_only) {
  const std::string beyond = "\xc3\xa9 \xe2\x80\x8b \xef\xbf\xbd \xf0\x9f\x98\x80";  // characters of 2, 3 and 4 bytes
  for (const std::string text : {"a = [2\xc3\xa9]", "a = [2 \xc3\xa9", "\xc3\xa9 = 1", "a = \xc3\xa9", "[\xc3\xa9]",
                                 "a = 'b' \xc3\xa9", "a = 0\"\xc3\xa9\"", "a = [\"b\"\"\xc3\xa9\"]", "a'\xc3\xa9' = 1",
                                 "a = 09-[\"\"\"[\xc3\xa9\"\"\"", "a = \"\"\"b\\\xc3\xa9\"\"\""})
    BOOST_TEST(error(text).find(": not valid TOML: ") != std::string::npos, text);
  BOOST_TEST(error("a = [2\xc3\xa9]").find("\xc3\xa9") != std::string::npos);  // in the original spelling
  const std::string data = "# " + beyond + " \"\n[data] # " + beyond + " '\npath = ";
  for (const std::string quotes : {"\"", "'", "\"\"\"", "'''"})
    BOOST_TEST(load(tiny + data + quotes + beyond + quotes + " # '" + beyond + "\n").data.path == beyond);
  BOOST_TEST(load(tiny + data + "\"\\\"" + beyond + "\\u00e9\"\n").data.path == "\"" + beyond + "\xc3\xa9");
  BOOST_TEST(load(tiny + data + "'\\' # " + beyond).data.path == "\\");
  BOOST_TEST(load(tiny + data + "\"\"\"\n" + beyond + "\"\"\\\n " + beyond + "\\\"\"\"\"\"\" # " + beyond).data.path ==
             beyond + "\"\"" + beyond + "\"\"\"");
  BOOST_TEST(load("\xef\xbb\xbf" + tiny).model.dim == 8);
  BOOST_TEST(load(tiny, {"data.path=" + beyond}).data.path == beyond);
  BOOST_TEST(error("", {"data.augment=['\xc3\xa9']"}).find("'\xc3\xa9'") != std::string::npos);
  BOOST_TEST(error("[data]\n'\xc3\xa9' = 1\n").starts_with(":11: unknown key 'data.\xc3\xa9'"));
  for (const char* text : {"a = '\xf4\x80\x82\x80'", "a = \"\\U00100080\""})
    BOOST_TEST(error(text) == ": not valid TOML: a private-use character, U+100000 or above");
}

BOOST_AUTO_TEST_CASE(files_are_regular_and_of_reasonable_length) {
  BOOST_TEST(error_of([] { load_experiment("/dev/zero"); }) == "/dev/zero: cannot read: not a regular file");
  const TemporaryDirectory directory;
  const std::string path = directory / "x";
  write_file(path, tiny);
  std::filesystem::resize_file(path, std::uintmax_t{1} << 40);
  BOOST_TEST(error_of([&] { load_experiment(path); }, path) == ": the file has more than 1048576 bytes");
}

BOOST_AUTO_TEST_CASE(a_base_lies_beside_the_file_or_came_with_heed) {
  const TemporaryDirectory directory;
  const auto write = [&](const std::string& name, Index dim) {
    std::filesystem::create_directories((directory / name).parent_path());
    Experiment x = load_experiment("models/vit-micro.toml");
    x.model.dim = dim;
    write_file(directory / name, to_toml(x));
  };
  write("mine/models/vit-micro.toml", 4);
  write("installed/models/vit-micro.toml", 8);
  write("installed/models/other.toml", 12);
  write_file(directory / "mine/a.toml", "base = \"models/vit-micro.toml\"\n");
  write_file(directory / "mine/b.toml", "base = \"models/other.toml\"\n");
  BOOST_TEST(load_experiment(directory / "mine/a.toml").model.dim == 4);
  BOOST_TEST(error_of([&] { load_experiment(directory / "mine/b.toml"); }).find("does not exist") != std::string::npos);
  set_installed_places({directory / "nowhere", directory / "installed"});
  BOOST_TEST(load_experiment(directory / "mine/b.toml").model.dim == 12);
  BOOST_TEST(load_experiment("models/other.toml").model.dim == 12);
  BOOST_TEST(load_experiment("models/vit-micro.toml").model.dim == 64);  // the working directory has precedence
  set_installed_places({});
}

BOOST_AUTO_TEST_CASE(a_base_that_is_missing_or_leads_back) {
  const TemporaryDirectory directory;
  const std::string a = directory / "a", b = directory / "b";
  write_file(a, "base = \"none.toml\"\n");
  BOOST_TEST(error_of([&] { load_experiment(a); }, a) ==
             ":1: base 'none.toml' does not exist beside the file, in the working directory or among the files "
             "installed with heed");
  write_file(a, "base = 3\n");
  BOOST_TEST(error_of([&] { load_experiment(a); }, a) == ":1: 'base': expected a string, found an integer");
  write_file(a, fmt::format("base = \"{}\"\n", b));
  write_file(b, fmt::format("\nbase = \"{}\"\n", a));
  BOOST_TEST(error_of([&] { load_experiment(a); }, b) ==
             fmt::format(":2: base '{}' depends on this file; expected no cycle", a));
}

BOOST_AUTO_TEST_CASE(values_out_of_range) {
  // An invalid value is reported at its line.
  BOOST_TEST(error("[optim]\nlr = -1\n") == ":11: [optim] lr = -1; expected at least 0");
  BOOST_TEST(error("", {"model.patch=5"}) == ": [model] patch = 5 does not divide image = 8");
  for (const char* image : {"[8, 10]", "[10, 8]"})
    BOOST_TEST(error("", {fmt::format("model.image={}", image)}) ==
               fmt::format(": [model] patch = 4 does not divide image = {}", image));
  BOOST_TEST(error("", {"model.image=[8, 12]", "model.patch=[4, 6]"}) == "no error");
  BOOST_TEST(error("", {"model.image=[8, 12]", "model.patch=[6, 4]"}) ==
             ": [model] patch = [6, 4] does not divide image = [8, 12]");
  BOOST_TEST(error("", {"model.heads=3"}) == ": [model] heads = 3 does not divide dim = 8");
  BOOST_TEST(error("", {"model.heads=0"}) == "--set: [model] heads = 0; expected at least 1 and at most 1000000");
  BOOST_TEST(error("", {"model.dim=1000000000"}) ==
             "--set: [model] dim = 1000000000; expected at least 1 and at most 1000000");
  // Height and width have the same range.
  for (const int wrong : {-1, 0, 65536})
    for (const std::string& image : {fmt::format("[{}, 8]", wrong), fmt::format("[8, {}]", wrong)})
      BOOST_TEST(error("", {"model.image=" + image}) ==
                 fmt::format("--set: [model] image = {}; expected at least 1 and at most 65535", wrong));
  for (const char* patch : {"[0, 4]", "[4, 0]"})
    BOOST_TEST(error("", {fmt::format("model.patch={}", patch)}) ==
               "--set: [model] patch = 0; expected at least 1 and at most 1000000");
  BOOST_TEST(error("", {"optim.lr=-1"}) == "--set: [optim] lr = -1; expected at least 0");
  BOOST_TEST(error("", {"optim.lr=nan"}) == "--set: [optim] lr = nan; expected a finite number");
  BOOST_TEST(error("", {"optim.lr=inf"}) == "--set: [optim] lr = inf; expected a finite number");
  BOOST_TEST(error("", {"optim.betas=[0.9, 1]"}) == "--set: [optim] betas = 1; expected at least 0 and below 1");
  BOOST_TEST(error("", {"optim.betas=[0.9]"}) == ": [optim] betas has 1 values; expected 2");
  BOOST_TEST(error("", {"optim.min_lr=1"}) == ": [optim] min_lr = 1 is more than lr = 0.001");
  BOOST_TEST(error("", {"data.erase_probability=1.5"}) ==
             "--set: [data] erase_probability = 1.5; expected at least 0 and at most 1");
  BOOST_TEST(error("", {"data.std=[0]"}) == "--set: [data] std = 0; expected more than 0");
  BOOST_TEST(error("", {"data.mean=[0, 0]"}) ==
             ": [data] mean has 2 values; expected one, or one for each of the 1 channels");
  BOOST_TEST(error("", {"model.channels=3", "data.std=[1, 1]"}) ==
             ": [data] std has 2 values; expected one, or one for each of the 3 channels");
  BOOST_TEST(error("", {"optim.name=adam"}) == "--set: [optim] name = 'adam'; did you mean 'adamw'?");
  BOOST_TEST(error("", {"optim.schedule=step"}) ==
             "--set: [optim] schedule = 'step'; expected one of cosine, linear, rsqrt, constant");
  BOOST_TEST(error("", {"data.augment=['crop', 'mixip']"}) == "--set: [data] augment = 'mixip'; did you mean 'mixup'?");
  BOOST_TEST(error("", {"model.linear=['mul', 'mul', 'adder']"}) ==
             "--set: [model] linear has 3 values; expected one, or one for each of the 2 blocks");
  BOOST_TEST(error("", {"attention.mechanism=[]"}) ==
             "--set: [attention] mechanism has 0 values; expected one, or one for each of the 2 blocks");
}

// An error names the file and line of the value in effect.
BOOST_AUTO_TEST_CASE(values_of_a_base_are_reported_at_their_line) {
  const TemporaryDirectory directory;
  const std::string base = directory / "base", file = directory / "file";
  const std::string start = fmt::format("base = \"{}\"\n", base);
  write_file(base, tiny + "[optim]\nlr = -1\n");
  write_file(file, start);
  BOOST_TEST(error_of([&] { load_experiment(file); }) == base + ":11: [optim] lr = -1; expected at least 0");
  write_file(file, start + "[optim]\nlr = -2\n");
  BOOST_TEST(error_of([&] { load_experiment(file); }) == file + ":3: [optim] lr = -2; expected at least 0");
  BOOST_TEST(error_of([&] { load_experiment(file, {"optim.lr=-3"}); }) ==
             "--set: [optim] lr = -3; expected at least 0");
}

BOOST_AUTO_TEST_CASE(augmentations_belong_to_data_and_method) {
  const auto refusal = [](const std::string& augment, const std::string& name = "mnist") {
    return error("", {"data.augment=" + augment, "data.name=" + name});
  };
  const std::string undefined = " is not defined for ", start = ": [data] augment = ";
  BOOST_TEST(refusal("['crop', 'flip', 'crop']") == ": [data] augment: 'crop' is given twice");
  BOOST_TEST(refusal("['flip', 'flip']", "pixels") == ": [data] augment: 'flip' is given twice");
  BOOST_TEST(refusal("['flip', 'shift']", "pixels") == "no error");
  BOOST_TEST(refusal("['shift']") == start + "\"shift\" is defined for name = \"pixels\" only");
  BOOST_TEST(refusal("['flip', 'blur']") == start + "'blur'" + undefined + "method = 'supervised', only for \"dino\"");
  BOOST_TEST(refusal("['flip']", "listops") ==
             start + "'flip'" + undefined + "name = 'listops', whose examples are not augmented");
  BOOST_TEST(refusal("['flip', 'crop']", "pixels") ==
             start + "'crop'" + undefined + "name = 'pixels'; expected flip or shift");
}

BOOST_AUTO_TEST_CASE(tasks_need_their_outputs_and_labels) {
  BOOST_TEST(error("", {"model.output=tokens", "model.distilled=true"}) ==
             ": [model] distilled = true classifies images; expected output = \"class\", not 'tokens'");
  BOOST_TEST(error("", {"data.name=scenes"}) ==
             ": [data] name = \"scenes\" has one label per patch; set model.output=\"tokens\"");
  BOOST_TEST(error("", {"model.output=tokens", "train.label_smoothing=0.1"}) ==
             ": [train] label_smoothing = 0.1 requires one label per image; [model] output = \"tokens\" has one per "
             "patch");
  const auto dino = [](std::vector<std::string> sets) {
    sets.insert(sets.begin(), {"train.method=dino", "dino.local_crops=0"});
    return error("", sets);
  };
  const std::string start = ": [train] method = \"dino\" ",
                    scale = ": expected two fractions, the smaller first; found ";
  for (const char* name : {"text", "scenes"})
    BOOST_TEST(dino({fmt::format("data.name={}", name)}) ==
               start + fmt::format("requires images; [data] name = '{}'", name));
  BOOST_TEST(dino({"model.output=tokens"}) == start + "has its own head; remove [model] output = 'tokens'");
  BOOST_TEST(dino({"model.image=[8, 12]"}) ==
             start + "requires square images and patches; [model] image = [8, 12], patch = 4");
  BOOST_TEST(dino({"model.patch=[4, 2]"}) ==
             start + "requires square images and patches; [model] image = 8, patch = [4, 2]");
  BOOST_TEST(dino({"dino.local_scale=[0.3, 0.2]"}) == ": [dino] local_scale" + scale + "0.3, 0.2");
  BOOST_TEST(dino({"dino.global_scale=[0.3, 0.2]"}) == ": [dino] global_scale" + scale + "0.3, 0.2");
  BOOST_TEST(dino({"dino.local_scale=[0.2]"}) == ": [dino] local_scale" + scale + "0.2");
  BOOST_TEST(dino({"dino.global_scale=[0.5, 0.5]"}) == "no error");
  BOOST_TEST(dino({"dino.local_crops=1", "dino.local_size=8"}) == "no error");
}

// Both ends of each range: values beyond an end are rejected, with the range in words; values at an end are accepted.
BOOST_AUTO_TEST_CASE(ranges_end_where_they_should) {
  struct Range {
    const char* table;
    const char* words;
    std::vector<const char*> refused, accepted;  ///< each is set alone, in addition to `kind`
    std::vector<std::string> kind{};
  };
  const std::vector<std::string> dino{"train.method=dino", "dino.local_crops=0"}, pixels{"data.name=pixels"},
      text{"data.name=text"};
  const char *const from_0 = "at least 0", *const fraction = "at least 0 and below 1",
                    *const closed = "at least 0 and at most 1", *const share = "more than 0 and at most 1",
                    *const size = "at least 1 and at most 1000000", *const depth = "at least 1 and at most 10000";
  const Range ranges[] = {
      {"model", size, {"classes=0", "classes=1000001", "hidden=0"}, {"classes=1000000", "hidden=1"}},
      {"model", depth, {"depth=0", "depth=10001"}, {"depth=1", "depth=10000"}},
      {"model", "at least 0 and at most 10000", {"registers=-1", "registers=10001"}, {"registers=10000"}},
      {"model", from_0, {"layer_scale=-1"}, {"layer_scale=0"}},
      {"model", "more than 0", {"norm_eps=0"}, {"norm_eps=1e-30"}},
      {"data", from_0, {"validation=-1", "limit=-1"}, {"validation=0", "limit=0"}},
      {"data", share, {"crop_fraction=0", "crop_fraction=1.1"}, {"crop_fraction=1"}},
      {"data", "at least 0 and at most 1000", {"crop_padding=-1", "crop_padding=1001"}, {"crop_padding=1000"}},
      {"data", "at least 0 and at most 1000", {"randaugment_ops=-1", "randaugment_ops=1001"}, {"randaugment_ops=0"}},
      {"data",
       "at least 0 and at most 10",
       {"randaugment_magnitude=-1", "randaugment_magnitude=10.5"},
       {"randaugment_magnitude=0", "randaugment_magnitude=10"}},
      {"data", "more than 0", {"mixup_alpha=0", "cutmix_alpha=0"}, {"mixup_alpha=1e-9", "cutmix_alpha=1e-9"}},
      {"data", closed, {"erase_probability=-0.1"}, {"erase_probability=0", "erase_probability=1"}},
      {"data", "at least 2 and at most 256", {"levels=1", "levels=257"}, {"levels=2", "levels=256"}, pixels},
      {"data", from_0, {"side=-1"}, {"side=0"}, pixels},
      {"data", from_0, {"stride=-1", "windows=-1"}, {"stride=0", "windows=0"}, text},
      {"optim",
       from_0,
       {"weight_decay=-1", "clip=-1", "warmup_epochs=-1", "warmup_steps=-1", "min_lr=-1"},
       {"weight_decay=0", "clip=0", "warmup_epochs=0", "warmup_steps=0", "min_lr=0", "lr=0"}},
      {"optim", "at least -1", {"weight_decay_end=-2"}, {"weight_decay_end=-1", "weight_decay_end=0"}},
      {"optim", fraction, {"momentum=-0.1", "momentum=1"}, {"momentum=0", "betas=[0, 0]"}},
      {"optim", "more than 0", {"eps=0"}, {"eps=1e-30"}},
      {"train",
       fraction,
       {"label_smoothing=1", "dropout=1", "drop_path=1", "ema=1", "ema=-0.1"},
       {"label_smoothing=0", "dropout=0", "drop_path=0", "ema=0", "ema=0.9999"}},
      {"train", size, {"epochs=0", "batch=0", "batch=1000001"}, {"epochs=1", "batch=1", "batch=1000000"}},
      {"train",
       from_0,
       {"seed=-1", "max_steps=-1", "patience=-1", "microbatch=-1", "checkpoint_steps=-1"},
       {"seed=0", "max_steps=0", "patience=0", "microbatch=0", "checkpoint_steps=0"}},
      {"dino", "at least 2 and at most 1000000", {"out_dim=1", "out_dim=1000001"}, {"out_dim=2"}, dino},
      {"dino", size, {"hidden=0", "bottleneck=0", "local_size=0"}, {"hidden=1", "bottleneck=1", "local_size=1"}, dino},
      {"dino",
       from_0,
       {"freeze_last_layer=-1", "teacher_temp_warmup=-1"},
       {"freeze_last_layer=0", "teacher_temp_warmup=0"},
       dino},
      {"dino", "at least 0 and at most 100", {"local_crops=-1", "local_crops=101"}, {"local_crops=0"}, dino},
      {"dino",
       closed,
       {"center_momentum=-0.1", "center_momentum=1.1", "ema=-0.1", "ema=1.1"},
       {"center_momentum=0", "center_momentum=1", "ema=0", "ema=1"},
       dino},
      {"dino",
       "at least 1e-06",
       {"student_temp=0", "teacher_temp=0", "teacher_temp_start=0"},
       {"student_temp=1e-6", "teacher_temp=1e-6", "teacher_temp_start=1e-6"},
       dino}};
  for (const Range& range : ranges) {
    const auto with = [&](const char* set) {
      std::vector<std::string> sets = range.kind;
      sets.push_back(fmt::format("{}.{}", range.table, set));
      return error("", sets);
    };
    for (const std::string set : range.refused) {
      const std::size_t equals = set.find('=');
      BOOST_TEST(with(set.c_str()) == fmt::format("--set: [{}] {} = {}; expected {}", range.table,
                                                  set.substr(0, equals), set.substr(equals + 1), range.words));
    }
    for (const char* set : range.accepted) BOOST_TEST(with(set) == "no error", range.table << "." << set);
  }
  for (const char* scale : {"global_scale", "local_scale"}) {
    std::vector<std::string> sets = dino;
    sets.push_back(fmt::format("dino.{}=[0, 1]", scale));
    BOOST_TEST(error("", sets) == fmt::format("--set: [dino] {} = 0; expected {}", scale, share));
    sets.back() = fmt::format("dino.{}=[1, 1]", scale);
    BOOST_TEST(error("", sets) == "no error");
  }
}

// The families' defaults match docs/families.md, and a teacher's defaults match DINO's main_dino.py.
BOOST_AUTO_TEST_CASE(defaults_are_the_documented_ones) {
  using Values = std::map<std::string, std::string>;
  const auto check = [](Experiment x, const std::string& table, const Values& expected) {
    const Values found = settings_of(x);
    for (const auto& [key, value] : expected) BOOST_TEST(found.at(table + "." + key) == value, key);
  };
  const auto of_family = [](const char* family) {
    Experiment x;
    x.model.family = family;
    return x;
  };
  check(of_family("vit"), "model",
        {{"layer_scale", "0.0"}, {"pool", "\"cls\""}, {"pos_embed", "true"}, {"act", "\"gelu\""}});
  check(of_family("xcit"), "model",
        {{"layer_scale", "1.0"},
         {"tokens_norm", "true"},
         {"cls_depth", "2"},
         {"cls_attention", "\"softmax\""},
         {"lpi", "true"},
         {"bn_group", "0"}});
  check(of_family("cvt"), "model",
        {{"kv_stride", "2"}, {"qk_scale", "\"head\""}, {"pool", "\"cls\""}, {"act", "\"gelu\""}, {"bn_group", "0"}});
  check(of_family("soft-pyramid"), "model", {{"stem", "32"}, {"pool", "\"cls\""}, {"pos_embed", "true"}});
  Experiment teacher;
  teacher.train.method = "dino";
  check(teacher, "dino",
        {{"out_dim", "65536"},
         {"hidden", "2048"},
         {"bottleneck", "256"},
         {"norm_last_layer", "true"},
         {"freeze_last_layer", "1"},
         {"local_crops", "8"},
         {"global_scale", "[0.4, 1.0]"},
         {"local_scale", "[0.05, 0.4]"},
         {"local_size", "96"},
         {"student_temp", "0.1"},
         {"teacher_temp", "0.04"},
         {"teacher_temp_start", "0.04"},
         {"teacher_temp_warmup", "0"},
         {"center_momentum", "0.9"},
         {"ema", "0.996"}});
}

// The file must set classes and pool if the task needs them.
BOOST_AUTO_TEST_CASE(a_sequence_model_needs_the_keys_of_its_task) {
  const std::string sizes = "vocab = 4\ncontext = 8\ndim = 8\ndepth = 1\nheads = 1\nhidden = 8\n";
  const auto missing = [&](const std::string& task) {
    const std::string message = error_of([&] { load("[model]\nfamily = \"sequence\"\n" + task + sizes); });
    return message.substr(std::min(message.find("[model]"), message.size()));
  };
  BOOST_TEST(missing("task = \"lm\"\n") == "");
  for (const char* task : {"classify", "pair"})
    BOOST_TEST(missing(fmt::format("task = \"{}\"\n", task)) == "[model] lacks classes, pool");
  BOOST_TEST(missing("task = \"pair\"\nclasses = 3\n") == "[model] lacks pool");
  BOOST_TEST(missing("") == "[model] lacks task");
}

// By default, a microbatch is a sixteenth of the batch, rounded up, from 1 to 8.
BOOST_AUTO_TEST_CASE(microbatches_are_a_sixteenth_of_a_batch) {
  TrainConfig train;
  for (const auto& [batch, expected] : {std::pair(1, 1), {16, 1}, {17, 2}, {32, 2}, {112, 7}, {113, 8}, {1000, 8}})
    BOOST_TEST(microbatch_of(train, batch) == expected, batch);
  train.batch = 40;
  BOOST_TEST(microbatch_of(train) == 3);
  train.microbatch = 5;
  BOOST_TEST(microbatch_of(train) == 5);
  BOOST_TEST(microbatch_of(train, 1000) == 5);
}

BOOST_AUTO_TEST_CASE(sides_are_one_number_if_equal) {
  BOOST_TEST(static_cast<Index>(Sides(5, 5)) == 5);
  BOOST_TEST((Sides(5, 5) == 5));
  BOOST_TEST((Sides(5, 6) != Sides(6, 5)));
  BOOST_TEST(error_of([] { static_cast<void>(static_cast<Index>(Sides(2, 3))); }) ==
             "[model] image or patch of 2 x 3; expected a square here");
}

BOOST_AUTO_TEST_CASE(nearest_word) {
  const std::vector<std::string> words = {"cosine", "constant", "lr", "weight_decay"};
  BOOST_TEST(nearest("cosien", words) == "cosine");
  BOOST_TEST(nearest("COSINE", words) == "cosine");
  BOOST_TEST(nearest("learning_rate", words) == "lr");
  BOOST_TEST(nearest("wd", words) == "weight_decay");
  BOOST_TEST(nearest("decay", words) == "weight_decay");
  BOOST_TEST(nearest("q", words) == "");
  BOOST_TEST(nearest("", words) == "");
  BOOST_TEST(nearest(std::string(1000, 'c'), words) == "");
  BOOST_TEST(in_quotes("a\nb") == "'a\\x0ab'");
  BOOST_TEST(in_quotes(std::string(100, 'x')) == "'" + std::string(80, 'x') + "...'");
}

BOOST_AUTO_TEST_SUITE_END()
