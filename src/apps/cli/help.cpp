// heed help: help of commands, as for --help, and of other topics.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/fitted_text.h"

#include "heed/base/split.h"
#include "heed/base/suggest.h"
#include "heed/config/experiment.h"
#include "heed/nn/families.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <iostream>

namespace heed::cli {

namespace {

constexpr const char* of_runs =
    "Files in a run directory (heed train --run DIR):\n\n"
    "  config.toml        the configuration, every key with its meaning; heed train --resume reads it\n"
    "  environment.json   version and commit, date, compiler, CPU, BLAS, threads; whether subnormal numbers are kept\n"
    "  init.json          for a run started from given weights: their file, its CRC-32, and the source of each tensor\n"
    "  data.json          path and classes of the data, checksums of its files, names of validation and test files\n"
    "  plugins.json       for mechanisms from plugins: the plugins' files; plugin-NAME.so are copies of them\n"
    "  cost.json          operations and energy of the model, by layer\n"
    "  metrics.csv        a row for each epoch and, with train.log_steps, each step:\n"
    "                     kind,epoch,step,loss,accuracy,lr,images_per_s; kind is step, train, valid or test\n"
    "  gradients.csv      norms of gradients before clipping, for the same steps and epochs\n"
    "  best.safetensors   the weights with the best validation accuracy, or the latest without validation, once an\n"
    "                     epoch is complete; eval, predict and maps use this file or, until it exists,\n"
    "                     last.safetensors\n"
    "  last.safetensors   the weights and all other state that --resume needs\n\n"
    "Output of other commands, such as the pictures of heed maps, is written there too, unless -o names another "
    "file.\n";

constexpr const char* of_status =
    "Exit status:\n\n"
    "  0    success\n"
    "  1    a check has failed: a gradient, a bound, a comparison\n"
    "  2    bad input, described in one line on stderr; or output that could not be written\n"
    "  3    training diverged: a loss or weight is not finite\n"
    "  4    a claim is undecided (heed verdict)\n"
    "  130  interrupted; the run is saved, and heed train --resume continues it (a second interrupt, more than\n"
    "       two seconds later, ends it at once with the state of the last checkpoint)\n";

/// Returns the table of self-supervised training, [dino].
std::string dino_table() {
  Experiment x;
  x.train.method = "dino";
  const std::string all = to_toml(x);
  return all.substr(all.find("\n[dino]\n") + 1);
}

/// Returns the keys of the model families other than the default.
std::string model_tables() {
  std::string text;
  for (const ModelFamily& family : model_families()) {
    Experiment x;
    if (family.name == x.model.family) continue;
    x.model.family = family.name;
    const std::string all = to_toml(x);
    text += fmt::format("\nWith model.family = \"{}\":\n\n{}", family.name, all.substr(0, all.find("\n[attention]")));
  }
  return text;
}

/// Returns the keys of [data] for all data sets, without those in the text `shown`.
std::string data_table(const std::string& shown) {
  std::string text = "[data]\n";
  for (const std::string& name : config_values("data.name")) {
    Experiment x;
    x.data.name = name;
    for (const std::string& line : split(to_toml(x), '\n'))
      if (!line.starts_with("name = ") && (shown + text).find(line + "\n") == std::string::npos) text += line + "\n";
  }
  return text;
}

/// Returns the keys with a fixed set of values, except attention.mechanism, and these values.
std::string words_of_keys() {
  std::string text;
  for (const std::string& set : config_keys()) {
    const std::string key = set.substr(0, set.find('='));
    const std::vector<std::string> words = config_values(key);
    if (set.ends_with('=') && key != "attention.mechanism" && !words.empty())
      text += fmt::format("  {:<20}  {}\n", key, fmt::join(words, ", "));
  }
  return text;
}

std::string of_experiments() {
  Experiment shown;
  shown.model.class_token = true;
  const std::string usual = to_toml(shown);
  return "An experiment file is TOML: a model as its `base`, and the keys that differ. `base` is looked up beside\n"
         "the file, then in the working directory, then among the files installed with heed. --set TABLE.KEY=VALUE\n"
         "overrides a key. A key without effect, such as optim.momentum with optim.name = \"adamw\", causes a\n"
         "warning. These are all keys, with their defaults. Sizes of 0, empty lists of [model], model.task, and the\n"
         "pool of a sequence model with labels have no default and must be given:\n\n" +
         usual + model_tables() +
         "\nWith data sets of scenes or sequences, each of which rejects keys that do not apply to it:\n\n" +
         data_table(usual) + "\nWith train.method = \"dino\":\n\n" + dino_table() +
         "\nKeys with a fixed set of values:\n\n" + words_of_keys() +
         "\n`heed list` shows the mechanisms; their options are keys of [attention] or [attention.NAME].\n";
}

struct Topic {
  const char* name;
  const char* summary;
  std::string (*text)();
};

constexpr Topic topics[] = {
    {"experiment", "all keys of an experiment file", of_experiments},
    {"run", "files of a run directory", [] { return std::string(of_runs); }},
    {"status", "exit status", [] { return std::string(of_status); }},
};

/// Returns the topics, then the commands.
std::vector<std::string> subjects(const CommandLine& line) {
  std::vector<std::string> names;
  for (const Topic& topic : topics) names.emplace_back(topic.name);
  for (const CommandOutline& one : line.outline().commands) names.push_back(one.name);
  return names;
}

int help_command(const CommandLine& line, const std::vector<std::string>& words) {
  for (const Topic& topic : topics)
    if (words.size() == 1 && words[0] == topic.name) {
      std::cout << fitted(joined(topic.text()));
      return ok;
    }
  if (!words.empty()) {
    const std::vector<std::string> known = subjects(line);
    require(std::ranges::find(known, words[0]) != known.end(), "help: unknown topic or command {}{}",
            in_quotes(words[0]), suggestion(words[0], known));
  }
  std::cout << line.help(words);
  return ok;
}

}  // namespace

void add_help(Command program, const CommandLine& line) {
  static std::vector<std::string> words;
  Command command = program.command("help", "Show the help of a command, or one of the topics experiment, run, status");
  std::string list = "Topics:\n";
  for (const Topic& topic : topics) list += fmt::format("  {:<12} {}\n", topic.name, topic.summary);
  command.option("TOPIC", &words, "a command, such as train or probe model, or a topic; default: all commands",
                 {.offered = subjects(line)});
  command.footer(list);
  command.action([&line] { return help_command(line, words); });
}

}  // namespace heed::cli
