// heed: the program. Verbs are in the files beside this one.
#include "commands.h"

#include "heed/base/error.h"
#include "heed/base/parallel.h"
#include "heed/base/suggest.h"
#include "heed/train/trainer.h"

#include <algorithm>
#include <cstdio>

namespace heed::cli {

std::string& program_name() {
  static std::string name = "heed";
  return name;
}

CLI::Option* add_sets(CLI::App* command, std::vector<std::string>& sets, const std::string& meaning) {
  return command->add_option("--set", sets, meaning)->type_name("KEY=VALUE")->type_size(1)->allow_extra_args(false);
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

CLI::Option* add_threads(CLI::App* command, int& threads) {
  return command->add_option("--threads", threads, "threads; default: all cores")
      ->type_name("N")
      ->check(CLI::Range(1, max_threads));
}

void use_threads(int threads) {
  if (threads > 0) set_threads(threads);
}

namespace {

/// An error as one line on stderr, whatever names and paths it quotes.
int report(std::string what, int status) {
  std::replace_if(
      what.begin(), what.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, ' ');
  std::fflush(stdout);
  std::fprintf(stderr, "heed: %s\n", what.c_str());
  return status;
}

/// What is wrong with the command line. CLI11 complains about what is missing before it does about what is unknown;
/// the unknown verb or option is the better hint.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return error.what();
  const bool option = unknown.front().starts_with("-");
  std::vector<std::string> known;
  if (option) {
    for (const CLI::Option* o : command->get_options())
      for (const std::string& name : o->get_lnames()) known.push_back("--" + name);
  } else {
    for (const CLI::App* verb : command->get_subcommands({})) known.push_back(verb->get_name());
  }
  const std::string name = unknown.front().substr(0, unknown.front().find('='));
  return fmt::format("{}unknown {} {}{}", command == &app ? "" : command->get_name() + ": ",
                     option          ? "option"
                     : known.empty() ? "argument"
                                     : "verb",
                     in_quotes(name), suggestion(name, known));
}

int run(int argc, char** argv) {
  CLI::App app("heed: attention mechanisms on an ordinary computer", "heed");
  app.set_version_flag("--version", "heed " HEED_VERSION);
  app.require_subcommand(1);
  Verb chosen;
  const AddVerb add = [&chosen](CLI::App* command, Verb verb) {
    command->callback([&chosen, verb] { chosen = verb; });
  };
  add_train(app, add);
  add_eval(app, add);
  add_predict(app, add);
  add_maps(app, add);
  add_spectrum(app, add);
  add_residual(app, add);
  add_gradcheck(app, add);
  add_list(app, add);
  add_probe(app, add);
  add_cost(app, add);
  add_bench(app, add);
  add_scaling(app, add);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return report(usage_error(app, error) + "; see heed --help", bad_input);
  }
  return chosen();
}

}  // namespace
}  // namespace heed::cli

int main(int argc, char** argv) {
  if (argc > 0) heed::cli::program_name() = argv[0];
  using namespace heed;
  try {
    return cli::run(argc, argv);
  } catch (const Diverged& error) {
    return cli::report(error.what(), cli::diverged);
  } catch (const Error& error) {
    return cli::report(error.what(), cli::bad_input);
  } catch (const std::bad_alloc&) {
    return cli::report("not enough memory for a model and batch of this size", cli::bad_input);
  } catch (const std::exception& error) {
    // The system refused something: a name too long, a thread too many.
    return cli::report(error.what(), cli::bad_input);
  }
}
