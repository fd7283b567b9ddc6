// heed: the main program.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/memory.h"
#include "src/apps/cli/plugins/plugins.h"

#include "heed/attention/mechanism.h"
#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/base/printable.h"
#include "heed/base/subnormals.h"
#include "heed/base/suggest.h"
#include "heed/base/warnings.h"
#include "heed/config/experiment.h"
#include "heed/config/installed.h"
#include "heed/train/processes/core_count.h"
#include "heed/train/processes/processes.h"
#include "heed/train/trainer.h"
#include "heed/train/runs/commit.h"

#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <string_view>

namespace heed::cli {

std::string& program_name() {
  static std::string name = "heed";
  return name;
}

void print_warnings() {
  const std::vector<std::string> lines = take_warnings();
  if (lines.empty() || !started_processes().writes()) return;
  std::cout.flush();
  for (const std::string& warning : lines) std::cerr << "heed: warning: " << printable(warning) << "\n";
}

void add_sets(Command command, std::vector<std::string>& sets, const std::string& meaning,
              const std::vector<std::string>& offered) {
  command.option("--set", &sets, meaning, {.value = "KEY=VALUE", .one_each = true, .offered = offered});
}

std::vector<std::string> config_keys() {
  std::vector<std::string> words;
  const auto offer = [&](const std::string& word) {
    if (std::ranges::find(words, word) == words.end()) words.push_back(word);
  };
  Experiment defaults;
  for (const auto& [name, family] : family_names) {
    defaults.model.family = name;
    tables(defaults, [&](std::string_view table, const auto& config) {
      fields(config, [&](std::string_view key, const auto& member, const Rule& rule, std::string_view) {
        const std::string set = fmt::format("{}.{}=", table, key);
        offer(set);
        if (!std::is_same_v<std::decay_t<decltype(member)>, std::string> && !rule.per_block) return;
        for (const std::string& value : set == "attention.mechanism=" ? mechanism_names() : rule.choices)
          offer(set + value);
      });
    });
  }
  return words;
}

std::vector<std::string> config_values(const std::string& key) {
  std::vector<std::string> values;
  for (const std::string& word : config_keys())
    if (word.size() > key.size() + 1 && word.starts_with(key + "=")) values.push_back(word.substr(key.size() + 1));
  return values;
}

std::vector<std::string> mechanism_names() {
  std::vector<std::string> names;
  for (const MechanismEntry& entry : mechanisms()) names.emplace_back(entry.name);
  return names;
}

std::map<std::string, std::string> parse_options(const std::vector<std::string>& sets) {
  std::map<std::string, std::string> values;
  for (const std::string& set : sets) {
    const std::size_t equals = set.find('=');
    require(equals != std::string::npos && equals > 0, "--set {}: expected OPTION=VALUE", in_quotes(set));
    std::string text = set.substr(equals + 1);
    if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
    values[set.substr(0, equals)] = text;
  }
  return values;
}

void add_threads(Command command, int& threads) {
  command.option("--threads", &threads, "number of threads; default: OMP_NUM_THREADS, or all available cores",
                 {.value = "N", .range = {{1, max_threads}}});
}

Place use_threads(int threads) {
  const Place place = place_processes(started_processes(), threads);
  if (threads > 0) {
    set_threads(threads);
  } else if (place.cores > 0) {
    set_threads(place.cores, "this process's share of its host's cores");
  } else {
    const ThreadCount choice = default_threads();
    set_threads(choice.count, choice.reason);
  }
  return place;
}

int report_error(std::string what, int status) {
  std::ranges::replace(what, '\n', ' ');
  std::cout.flush();
  std::fflush(stdout);
  std::fprintf(stderr, "heed: %s\n", printable(what).c_str());
  return status;
}

Ending ending_of(const std::function<Ending()>& work) {
  try {
    return work();
  } catch (const OtherFailed&) {
    return {};
  } catch (const Diverged& error) {
    return {diverged, error.what()};
  } catch (const Error& error) {
    return {bad_input, error.what()};
  } catch (const std::bad_alloc&) {
    return {bad_input, "not enough memory for a model and batch of this size"};
  } catch (const std::filesystem::filesystem_error& error) {
    return {bad_input, fmt::format("{}: {}", error.path1().string(), error.code().message())};
  } catch (const std::exception& error) {
    // The system has refused a request, such as a path that is too long or the start of a thread.
    return {bad_input, error.what()};
  }
}

namespace {

/// Returns the directories that may hold the program's models and experiments: the checkout that contains its build, or
/// the directory share/heed of its installation.
std::vector<std::filesystem::path> places_of_program() {
  const std::filesystem::path program = program_file();
  if (program.empty()) return {};
  const std::filesystem::path above = program.parent_path().parent_path();
  return {above, above / "share/heed"};
}

int run(int argc, char** argv) {
  CommandLine line("heed", "heed: attention mechanisms on an ordinary computer",
                   fmt::format("heed " HEED_VERSION " ({})", built_for()));
  const Command program = line.program();
  for (AddCommand* const add :
       {add_train,    add_sweep,     add_compare,  add_diff,     add_verdict, add_report,       add_lr,
        add_eval,     add_features,  add_predict,  add_generate, add_image,   add_maps,         add_spectrum,
        add_residual, add_gradcheck, add_selftest, add_list,     add_plugin,  add_lab,          add_grade,
        add_convert,  add_probe,     add_cost,     add_bench,    add_scaling, add_sequence_data})
    add(program);
  add_help(program, line);
  add_completion(program, line);
  static std::vector<std::string> plugins;
  line.option_of_all("--plugin", &plugins, "add the mechanisms of this plugin (`heed plugin`); repeatable",
                     {.value = "FILE", .one_each = true});
  return line.run(argc, argv, [](const std::string& command) {
    const bool shared = command == "train" || command == "eval" || command == "bench";
    require(shared || started_processes().count() == 1,
            "{}: {} processes were started; this command runs in one process; only train, eval and bench use several",
            command, started_processes().count());
    if (command != "plugin") load_plugins(plugins);  // the command `plugin` may rebuild one of them
  });
}

}  // namespace
}  // namespace heed::cli

namespace {

/// Runs the program and returns its status and error.
heed::Ending run_program(int argc, char** argv) {
  using namespace heed;
  cli::require_stack();
  cli::limit_memory();
  // Only one of several processes prints.
  if (!started_processes().writes() && !std::freopen("/dev/null", "w", stdout)) fail("/dev/null cannot be opened");
  const int status = cli::run(argc, argv);
  // A failure to write output is an error.
  const bool arrived = std::cout.flush().good() && std::fflush(stdout) == 0;
  cli::print_warnings();
  if (arrived || status == cli::bad_input || status == cli::interrupted) return {status};
  return {cli::bad_input, "standard output cannot be written"};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 0) heed::cli::program_name() = heed::shell_word(argv[0]);
  heed::flush_subnormals();  // before other threads start, since they inherit this mode
  // Set before OpenBLAS is loaded: heed calls it from its own threads (kernels/shared/blas.h), so it should start none.
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  heed::set_installed_places(heed::cli::places_of_program());
  std::signal(SIGXFSZ, SIG_IGN);  // exceeding a file-size limit is then an error, like a full disk
  const heed::Ending ending = heed::end_together(heed::cli::ending_of([=] { return run_program(argc, argv); }));
  return ending.error.empty() ? ending.status : heed::cli::report_error(ending.error, ending.status);
}
