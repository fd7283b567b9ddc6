// heed help, heed list NAME, heed completion, and the description of the probe's files in --help.
#include "support/cli.h"
#include "support/command.h"
#include "support/lines.h"
#include "support/temporary.h"

#include "heed/attention/mechanism.h"
#include "heed/config/experiment.h"

#include <set>

using namespace heed;
using namespace heed::test;

BOOST_AUTO_TEST_SUITE(cli_help)

BOOST_AUTO_TEST_CASE(help_of_commands_is_what_the_option_shows) {
  BOOST_TEST(output_of({"help"}) == output_of({"--help"}));
  BOOST_TEST(output_of({"help", "train"}) == output_of({"train", "--help"}));
  BOOST_TEST(output_of({"help", "probe", "model"}) == output_of({"probe", "model", "--help"}));
  check_refusal({"help", "trian"}, {"'trian'; did you mean 'train'?"});
  check_refusal({"help", "experimnt"}, {"'experimnt'; did you mean 'experiment'?"});
  check_refusal({"help", "nothing"},
                {"unknown topic or command 'nothing'; expected one of experiment, run, status, train"});
  check_refusal({"help", "probe", "modle"}, {"'modle'; did you mean 'model'?"});
}

BOOST_AUTO_TEST_CASE(defaults_are_shown) {
  const auto help = [](const char* command) { return in_one_line(output_of({"help", command})); };
  check_contains(help("generate"), {"number of tokens to write; default: 256", "to keep; default: 0.5"});
  check_contains(help("listops"), {"training expressions; default: 96000", "shorter than this; default: 2000"});
  check_contains(help("pairs"), {"training pairs; default: 40000", "random seed; default: 1"});
}

BOOST_AUTO_TEST_CASE(topics) {
  check_contains(output_of({"help", "experiment"}), {"[optim]", "lr = 0.001", "init_positions", "data", "base"});
  check_contains(output_of({"help", "experiment"}), {"bn_group", "kv_stride", "cls_attention", "stem", "vocab"});
  check_contains(output_of({"help", "experiment"}), {"With train.method = \"dino\":\n\n[dino]\nout_dim = 65536 "});
  check_contains(output_of({"help", "experiment"}),
                 {"model.task            lm, classify, pair\n", "listops, documents"});
  check_contains(output_of({"help", "run"}), {"metrics.csv", "best.safetensors", "init.json"});
  check_contains(output_of({"help", "status"}), {"130", "interrupted"});
}

// heed help lists all keys that the reader accepts.
BOOST_AUTO_TEST_CASE(no_key_is_left_out) {
  const std::string text = output_of({"help", "experiment"});
  Experiment x;
  for (const auto& [name, family] : family_names) {
    x.model.family = name;
    tables(x, [&](std::string_view, const auto& config) {
      fields(config, [&](std::string_view key, const auto&, const Rule&, std::string_view) {
        check_contains(text, {fmt::format("\n{} = ", key)});
      });
    });
  }
}

BOOST_AUTO_TEST_CASE(one_mechanism_in_full) {
  for (const MechanismEntry& entry : mechanisms()) {
    const std::string text = in_one_line(output_of({"list", entry.name}));
    check_contains(text, {entry.summary, "--set attention.mechanism=" + std::string(entry.name)});
    for (const OptionInfo& option : entry.options()) check_contains(text, {option.name + " = ", option.meaning});
  }
  check_contains(output_of({"list", "aft"}),
                 {"parameters of the mechanism", "u  ", "[49, 128]", "--show", "  biases  "});
  check_contains(in_one_line(output_of({"list", "nystrom"})),
                 {"models/vit-micro.toml has 50 tokens; nystrom needs other sizes: [nystrom] landmarks is"});
  check_refusal({"list", "sotfmax"}, {"'sotfmax'; did you mean 'softmax'?"});
}

// One line per setting: its label, its growth with the number of tokens, and its options as heed scaling accepts them.
// The growth is "matrix" if there is a parameter for each pair of tokens.
BOOST_AUTO_TEST_CASE(settings_for_scripts) {
  const std::string text = output_of({"list", "--settings"});
  check_contains(
      "\n" + text,
      {"\nsoftmax\tquadratic\tsoftmax\n", "\nsima\tlinear\tsima\n", "\naft-full\tquadratic\taft\n",
       "\naft-dense\tmatrix\taft:param=dense\n", "\naft-conv\tlinear\taft:size=5:variant=conv\n",
       "\nsynthesizer\tquadratic\tsynthesizer\n", "\nsynthesizer-random\tmatrix\tsynthesizer:kind=random\n",
       "\nlambda\tmatrix\tlambda:key_dim=16\n", "\nlambda-content\tlinear\tlambda:key_dim=16:positions=false\n"});
  std::size_t settings = 0;
  for (const MechanismEntry& entry : mechanisms()) settings += entry.settings().size();
  BOOST_TEST(lines_of(text).size() == settings);
  check_refusal({"list", "--settings", "--style", "softmax"}, {"--style", "--settings"});
}

// The help is 80 columns wide if the terminal's width is unknown.
BOOST_AUTO_TEST_CASE(help_fits_80_columns) {
  const EnvironmentVariable unknown("COLUMNS", std::nullopt);
  std::vector<std::vector<std::string>> pages{
      {"list"}, {"help"}, {"help", "experiment"}, {"help", "run"}, {"help", "status"}};
  for (const char* command :
       {"train",     "sweep", "compare", "verdict", "report", "lr",         "eval",     "predict",
        "generate",  "image", "maps",    "cost",    "bench",  "probe",      "spectrum", "residual",
        "gradcheck", "list",  "convert", "scaling", "help",   "completion", "features", "diff"})
    pages.push_back({"help", command});
  for (const char* what : {"attention", "linear", "model", "decode", "knn", "ridge"})
    pages.push_back({"help", "probe", what});
  for (const MechanismEntry& entry : mechanisms()) pages.push_back({"list", entry.name});
  for (const std::vector<std::string>& page : pages)
    for (const std::string& line : lines_of(output_of(page))) BOOST_TEST(columns_of(line) <= 80, line);

  const std::vector<std::string> list = lines_of(output_of({"list"}));
  const auto begins = [&](const std::string& start) {
    return std::any_of(list.begin(), list.end(), [&](const std::string& line) { return line.starts_with(start); });
  };
  // A long meaning continues in its own column.
  BOOST_TEST(begins("              variant = full       where keys"));
  BOOST_TEST(begins(std::string(35, ' ') + "simple, conv)"));
}

// A long line of the page continues below, indented by 7 columns. Each line holds as many words as fit in the
// terminal's width, or in 40 or 100 columns if the terminal is narrower or wider.
BOOST_AUTO_TEST_CASE(lines_are_filled) {
  const auto page = [](const std::string& columns) {
    const EnvironmentVariable width("COLUMNS", columns);
    return output_of({"help", "status"});
  };
  const std::string indent(7, ' ');
  std::set<std::vector<std::string>> wholes;
  for (const std::size_t width : {40, 47, 60, 100}) {
    std::vector<std::string> whole;
    std::string before;
    for (const std::string& line : lines_of(page(std::to_string(width)))) {
      BOOST_TEST(line.size() <= width, line);
      if (line.starts_with(indent)) {
        const std::string rest = line.substr(indent.size());
        BOOST_TEST(before.size() + 1 + rest.substr(0, rest.find(' ')).size() > width, before << "\n" << line);
        whole.back() += " " + rest;
      } else {
        whole.push_back(line);
      }
      before = line;
    }
    wholes.insert(whole);
  }
  BOOST_TEST(wholes.size() == 1u);
  for (const auto& [columns, used] : {std::pair("20", "40"), {"300", "100"}, {"0", "80"}, {"-9", "80"}, {"x", "80"}})
    BOOST_TEST(page(columns) == page(used), columns);
}

BOOST_AUTO_TEST_CASE(the_probes_contract) {
  const auto help = [](const std::vector<std::string>& arguments) { return in_one_line(output_of(arguments)); };
  check_contains(help({"probe", "--help"}), {"IN and OUT are safetensors files", "attention", "linear", "model"});
  check_contains(help({"probe", "attention", "--help"}), {"grad_out [B,H,N,E]", "map [B,H,N,M]", "mode=train"});
  check_contains(help({"probe", "linear", "--help"}), {"weight [O,I]", "kind=adder"});
  check_contains(help({"probe", "model", "--help"}), {"images [B,C,H,W]", "labels [B]", "grad.NAME"});
  check_contains(help({"probe", "model", "--help"}), {"tokens [B,T]", "targets [B,T]", "lengths [B]", "tokens2"});
  check_contains(help({"probe", "decode", "--help"}), {"tokens [B,T]", "logits [B,T,vocab]"});
}

// Bash completes the last, unfinished word of a line.
BOOST_AUTO_TEST_CASE(bash_completes) {
  const TemporaryDirectory directory;
  write_file(directory / "completion", output_of({"completion", "bash"}));
  const auto offered = [&](const std::string& words, int at) {
    const CommandResult result = run_command(
        fmt::format("bash -c 'source completion; compopt() {{ :; }}; COMP_WORDS=({}); COMP_CWORD={}; _heed; "
                    "echo \"${{COMPREPLY[*]}}\"'",
                    words, at),
        directory / "");
    BOOST_TEST(result.status == 0, result.errors);
    BOOST_TEST(result.errors == "");
    return result.output;
  };
  BOOST_TEST(offered("heed tr", 1) == "train\n");
  BOOST_TEST(offered("heed train --re", 2) == "--resume\n");
  BOOST_TEST(offered("heed train x.toml --set train.init_h", 4) == "train.init_head=\n");
  BOOST_TEST(offered("heed list softm", 2) == "softmax\n");
  BOOST_TEST(offered("heed probe mo", 2) == "model\n");
  BOOST_TEST(offered("heed probe attention --mechanism sim", 4) == "sima\n");
  BOOST_TEST(offered("heed eval runs/x --split va", 4) == "validation valid val\n");
  // Bash splits KEY=VALUE into three words, or one if "=" is not in COMP_WORDBREAKS.
  BOOST_TEST(offered("heed train x.toml --set attention.mechanism = perf", 6) == "performer\n");
  BOOST_TEST(offered("heed train x.toml --set attention.mechanism=perf", 4) == "attention.mechanism=performer\n");
  BOOST_TEST(offered("heed train x.toml --set attention.mechan", 4) == "attention.mechanism=\n");
  BOOST_TEST(offered("heed lr x.toml --set optim.schedule = ", 5) ==
             offered("heed lr x.toml --set optim.schedule = \"\"", 6));
  BOOST_TEST(offered("heed lr x.toml --set optim.schedule = ", 5) == "cosine linear rsqrt constant\n");
  BOOST_TEST(offered("heed eval runs/x --split = va", 5) == "validation valid val\n");
  BOOST_TEST(offered("heed image --data cif", 3) == "cifar10 cifar100\n");
  BOOST_TEST(offered("heed eval r --data pix", 4) == "pixels\n");
  check_refusal({"completion", "fish"}, {"fish", "bash"});
}

BOOST_AUTO_TEST_SUITE_END()
