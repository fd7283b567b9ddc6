#include "command_line.h"

#include "fitted_text.h"
#include "heed/base/error.h"
#include "heed/base/split.h"
#include "heed/base/suggest.h"

#include <CLI/CLI.hpp>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

namespace heed::cli {

namespace {

/// Adds an option for a list whose items may be in one word, separated by commas. CLI11's own delimiter would drop
/// empty items.
template <class Item>
CLI::Option* add_with_commas(CLI::App* app, const std::string& name, std::vector<Item>& list,
                             const std::string& meaning) {
  const auto take = [&list](const std::vector<std::string>& words) {
    list.clear();
    for (const std::string& word : words)
      for (const std::string& item : split(word, ','))
        if constexpr (std::is_integral_v<Item>)
          list.push_back(std::stoll(item));
        else if constexpr (std::is_floating_point_v<Item>)
          list.push_back(std::stod(item));
        else
          list.push_back(item);
  };
  return app->add_option_function<std::vector<std::string>>(name, take, meaning);
}

CLI::Option* add(CLI::App* app, const std::string& name, Destination into, const std::string& meaning, bool commas) {
  return std::visit(
      [&](auto* value) {
        if constexpr (std::is_same_v<decltype(value), bool*>) {
          return app->add_flag(name, *value, meaning);
        } else {
          if constexpr (requires { value->emplace_back(); })
            if (commas) return add_with_commas(app, name, *value, meaning);
          return app->add_option(name, *value, meaning);
        }
      },
      into);
}

/// Returns the check of a word or, for a list with commas, of each of its items.
CLI::Validator check_of(const OptionRules& rules, const CLI::Validator& one) {
  if (!rules.commas) return one;
  const auto each = [one](const std::string& word) {
    std::string refusal;
    for (const std::string& item : split(word, ','))
      if (refusal.empty()) refusal = one(item);
    return refusal;
  };
  return {each, one.get_description()};
}

/// Returns the reason why a text is not a number that the rules allow; empty if it is. CLI11 alone reads 010 as 8,
/// empty text as 0, too large integers as the maximum, and accepts nan in every range.
template <class T>
std::string refusal_of(const std::string& text, const OptionRules& rules) {
  T value{};
  const bool whole = parse_number(text, value) && (!std::is_integral_v<T> || text == fmt::to_string(value));
  const auto number = static_cast<double>(value);
  std::string expected = std::is_integral_v<T> ? "a whole number" : "a number";
  if (rules.positive) expected += " above 0";
  if (rules.range) expected += fmt::format(" from {} to {}", rules.range->least, rules.range->most);
  const bool allowed = std::isfinite(number) && (!rules.positive || number > 0) &&
                       (!rules.range || (number >= rules.range->least && number <= rules.range->most));
  return whole && allowed ? "" : fmt::format("{}; expected {}", in_quotes(text), expected);
}

/// Adds a check of a number to an option. The help describes the rules in CLI11's words.
template <class T>
void check_number(CLI::Option* option, const OptionRules& rules) {
  std::string words = rules.positive ? CLI::PositiveNumber.get_description() : "";
  if (rules.range)
    words = CLI::Range(static_cast<T>(rules.range->least), static_cast<T>(rules.range->most)).get_description();
  const auto refusal = [rules](const std::string& text) { return refusal_of<T>(text, rules); };
  option->check(check_of(rules, CLI::Validator(refusal, words)));
}

std::vector<std::string> commands_of(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* one : app.get_subcommands({})) names.push_back(one->get_name());
  return names;
}

CommandOutline outline_of(const CLI::App& app, const CommandChoices& choices) {
  CommandOutline outline{.name = app.get_name(), .options = {}, .commands = {}};
  for (const CLI::Option* option : app.get_options()) {
    CommandOutline::Option& made = outline.options.emplace_back();
    for (const std::string& name : option->get_snames()) made.names.push_back("-" + name);
    for (const std::string& name : option->get_lnames()) made.names.push_back("--" + name);
    made.flag = option->get_items_expected_max() == 0;
    if (const auto found = choices.offered.find(option); found != choices.offered.end()) made.offered = found->second;
  }
  for (const CLI::App* one : app.get_subcommands({})) outline.commands.push_back(outline_of(*one, choices));
  return outline;
}

/// Help wrapped to the terminal's width.
class FittedHelp : public CLI::Formatter {
 public:
  std::string make_help(const CLI::App* app, std::string name, CLI::AppFormatMode mode) const override {
    return fitted(CLI::Formatter::make_help(app, std::move(name), mode));
  }
};

/// Returns the requested command.
const CLI::App& asked(const CLI::App& app) {
  const CLI::App* command = &app;
  while (!command->get_subcommands().empty()) command = command->get_subcommands().front();
  return *command;
}

/// Describes an error in the command line. CLI11 reports missing arguments before unknown ones; the unknown command or
/// option is the better hint.
std::string usage_error(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App* const command = &asked(app);
  const std::vector<std::string> unknown = app.remaining(true);
  if (unknown.empty()) return error.what();
  const bool option = unknown.front().starts_with("-");
  std::vector<std::string> known;
  if (option) {
    for (const CLI::Option* o : command->get_options())
      for (const std::string& name : o->get_lnames()) known.push_back("--" + name);
  } else {
    known = commands_of(*command);
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
  return {app_->add_subcommand(name, summary), choices_};
}

void Command::option(const std::string& name, Destination into, const std::string& meaning, const OptionRules& rules) {
  const auto default_text = [](const auto* value) { return fmt::format("; default: {}", *value); };
  const std::string end = rules.states_default ? std::visit(default_text, into) : "";
  CLI::Option* const option = add(app_, name, into, meaning + end, rules.commas);
  if (rules.value) option->type_name(rules.value);
  option->required(rules.required);
  if (std::holds_alternative<double*>(into) || std::holds_alternative<std::vector<double>*>(into))
    check_number<double>(option, rules);
  else if (std::holds_alternative<int*>(into) || std::holds_alternative<Index*>(into) ||
           std::holds_alternative<std::vector<Index>*>(into))
    check_number<Index>(option, rules);
  if (std::holds_alternative<std::string*>(into) && name.starts_with('-') && !rules.empty) {
    const auto refusal = [value = rules.value ? rules.value : "TEXT"](const std::string& text) {
      return text.empty() ? fmt::format("''; expected {}", value) : "";
    };
    option->check(CLI::Validator(refusal, ""));
  }
  // In the help, a space follows each comma, so that a long list of values can be wrapped.
  if (!rules.one_of.empty())
    option->check(
        check_of(rules, CLI::IsMember(rules.one_of).description(fmt::format("{{{}}}", fmt::join(rules.one_of, ", ")))));
  // Otherwise the option would also take the words after its value.
  if (rules.one_each) option->type_size(1)->allow_extra_args(false);
  if (rules.excludes)
    for (const std::string& other : split(rules.excludes, ',')) option->excludes(app_->get_option(other));
  if (rules.needs) option->needs(app_->get_option(rules.needs));
  choices_->offered[option] = rules.one_of.empty() ? rules.offered : rules.one_of;
}

void Command::footer(const std::string& text) { app_->footer(joined(text)); }

void Command::action(std::function<int()> run) {
  app_->callback([choices = choices_, run = std::move(run)] { choices->chosen = run; });
}

CommandLine::CommandLine(const std::string& name, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, name)) {
  app_->formatter(std::make_shared<FittedHelp>());
  app_->set_version_flag("--version", version);
}

CommandLine::~CommandLine() = default;

void CommandLine::option_of_all(const std::string& name, Destination into, const std::string& meaning,
                                const OptionRules& rules) {
  std::vector<CLI::App*> apps{app_.get()};
  while (!apps.empty()) {
    CLI::App* const app = apps.back();
    const std::vector<CLI::App*> below = app->get_subcommands({});
    apps.pop_back();
    apps.insert(apps.end(), below.begin(), below.end());
    if (below.empty()) Command(app, &choices_).option(name, into, meaning, rules);
  }
}

int CommandLine::run(int argc, char** argv, const std::function<void(const std::string&)>& first) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app_->exit(help);
  } catch (const CLI::ParseError& error) {
    std::string names;
    for (const CLI::App* command = &asked(*app_); command; command = command->get_parent())
      names = command->get_name() + " " + names;
    fail("{}; see {}--help", usage_error(*app_, error), names);
  }
  first(asked(*app_).get_name());
  return choices_.chosen();
}

std::string CommandLine::help(const std::vector<std::string>& words) const {
  const CLI::App* command = app_.get();
  std::string before;
  for (const std::string& word : words) {
    const std::vector<std::string> known = commands_of(*command);
    require(std::ranges::find(known, word) != known.end(), "help: unknown command of {}: {}{}", command->get_name(),
            in_quotes(word), known.empty() ? "" : suggestion(word, known));
    before += (before.empty() ? "" : " ") + command->get_name();
    command = command->get_subcommand(word);
  }
  // CLI11 would print the help of the parsed command, which is `help` itself.
  return command->get_formatter()->make_help(
      command, before.empty() ? command->get_name() : before + " " + command->get_name(), CLI::AppFormatMode::Normal);
}

CommandOutline CommandLine::outline() const { return outline_of(*app_, choices_); }

}  // namespace heed::cli
