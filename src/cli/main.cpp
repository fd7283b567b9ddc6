// heed: the program. Verbs are in the files beside this one.
#include "commands.h"

#include "heed/check.h"
#include "heed/parallel.h"
#include "heed/train/trainer.h"

#include <cstdio>
#include <iostream>

namespace heed::cli {

CLI::Option* add_sets(CLI::App* command, std::vector<std::string>& sets, const std::string& meaning) {
  return command->add_option("--set", sets, meaning)->type_name("KEY=VALUE")->type_size(1)->allow_extra_args(false);
}

CLI::Option* add_threads(CLI::App* command, int& threads) {
  return command->add_option("--threads", threads, "threads; default: all cores")->type_name("N")->check(CLI::PositiveNumber);
}

void use_threads(int threads) {
  if (threads > 0) set_threads(threads);
}

namespace {

/// An error as one line on stderr.
int report(const char* what, int status) {
  std::fflush(stdout);
  std::fprintf(stderr, "heed: %s\n", what);
  return status;
}

int run(int argc, char** argv) {
  CLI::App app("heed: attention mechanisms on an ordinary computer", "heed");
  app.set_version_flag("--version", "heed " HEED_VERSION);
  app.require_subcommand(1);
  Verb chosen;
  const AddVerb add = [&chosen](CLI::App* command, Verb verb) { command->callback([&chosen, verb] { chosen = verb; }); };
  add_train(app, add);
  add_eval(app, add);
  add_predict(app, add);
  add_maps(app, add);
  add_gradcheck(app, add);
  add_list(app, add);
  add_probe(app, add);
  add_bench(app, add);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    return report((std::string(error.what()) + "; see heed --help").c_str(), bad_input);
  }
  return chosen();
}

}  // namespace
}  // namespace heed::cli

int main(int argc, char** argv) {
  using namespace heed;
  try {
    return cli::run(argc, argv);
  } catch (const Diverged& error) {
    return cli::report(error.what(), cli::diverged);
  } catch (const Error& error) {
    return cli::report(error.what(), cli::bad_input);
  } catch (const std::bad_alloc&) {
    return cli::report("not enough memory for a model and batch of this size", cli::bad_input);
  }
}
