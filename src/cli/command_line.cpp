#include "command_line.h"

#include "heed/base/error.h"
#include "heed/base/suggest.h"

#include <CLI/CLI.hpp>

#include <type_traits>

namespace heed::cli {

namespace {

CLI::Option* add(CLI::App* app, const std::string& name, Destination into, const std::string& meaning) {
  return std::visit(
      [&](auto* value) {
        if constexpr (std::is_same_v<decltype(value), bool*>)
          return app->add_flag(name, *value, meaning);
        else
          return app->add_option(name, *value, meaning);
      },
      into);
}

/// What is wrong with the command line. CLI11 complains about what is missing before it does about what is unknown;
/// the unknown command or option is the better hint.
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
    for (const CLI::App* one : command->get_subcommands({})) known.push_back(one->get_name());
  }
  const std::string name = unknown.front().substr(0, unknown.front().find('='));
  return fmt::format("{}unknown {} {}{}", command == &app ? "" : command->get_name() + ": ",
                     option          ? "option"
                     : known.empty() ? "argument"
                                     : "command",
                     in_quotes(name), suggestion(name, known));
}

}  // namespace

Command Command::command(const std::string& name, const std::string& summary) {
  app_->require_subcommand(1);
  return {app_->add_subcommand(name, summary), chosen_};
}

void Command::option(const std::string& name, Destination into, const std::string& meaning, const OptionRules& rules) {
  CLI::Option* const option = add(app_, name, into, meaning);
  if (rules.value) option->type_name(rules.value);
  option->required(rules.required);
  if (rules.positive) option->check(CLI::PositiveNumber);
  if (rules.range) {
    const auto [least, most] = *rules.range;
    option->check(std::holds_alternative<double*>(into)
                      ? CLI::Range(least, most)
                      : CLI::Range(static_cast<Index>(least), static_cast<Index>(most)));
  }
  if (!rules.one_of.empty()) option->check(CLI::IsMember(rules.one_of));
  if (rules.commas) option->delimiter(',');
  // Otherwise a list swallows the words after its first value.
  if (rules.one_each) option->type_size(1)->allow_extra_args(false);
  if (rules.excludes) option->excludes(app_->get_option(rules.excludes));
}

void Command::footer(const std::string& text) { app_->footer(text); }

void Command::action(std::function<int()> run) {
  app_->callback([chosen = chosen_, run = std::move(run)] { *chosen = run; });
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

int CommandLine::run(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app_->exit(help);
  } catch (const CLI::ParseError& error) {
    fail("{}; see {} --help", usage_error(*app_, error), app_->get_name());
  }
  return chosen_();
}

}  // namespace heed::cli
