// Command line: commands and their options. The parser library is included in command_line.cpp only, since it takes
// longer to compile than any command.
#pragma once

#include "heed/base/tensor.h"

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

namespace CLI {
class App;
}

namespace heed::cli {

/// Destination of an option's value. A bool is a flag without a value; a list takes any number of values.
using Destination = std::variant<bool*, int*, Index*, double*, std::string*, std::vector<std::string>*,
                                 std::vector<Index>*, std::vector<double>*>;

/// Minimum and maximum value.
struct Range {
  double least, most;
};

/// Constraints on an option's value beyond its type, and the value's placeholder in the help.
struct OptionRules {
  const char* value = nullptr;  ///< placeholder in the help, "FILE" in --init FILE; null: the type
  bool required = false;
  bool empty = false;                  ///< an empty text is a valid value
  bool positive = false;               ///< any number above 0
  std::optional<Range> range{};        ///< valid range of the value; for a list, of each item
  std::vector<std::string> one_of{};   ///< allowed values; for a list, allowed items
  bool commas = false;                 ///< a list's values may be in one word: 64,128,256
  bool one_each = false;               ///< a list's option is repeated for each value
  const char* excludes = nullptr;      ///< incompatible options, separated by commas
  const char* needs = nullptr;         ///< option that this one requires
  bool states_default = false;         ///< a number's help ends with its default
  std::vector<std::string> offered{};  ///< values for shell completion
};

/// A command's words, for shell completion.
struct CommandOutline {
  struct Option {
    std::vector<std::string> names;    ///< "-o", "--output"; none for a positional argument
    bool flag = false;                 ///< an option without a value
    std::vector<std::string> offered;  ///< its possible values
  };
  std::string name;
  std::vector<Option> options;
  std::vector<CommandOutline> commands;
};

/// Result of parsing a command line, and completions of its options.
struct CommandChoices {
  std::function<int()> chosen;                                ///< action of the selected command
  std::map<const void*, std::vector<std::string>> offered{};  ///< completion values of each option
};

/// A command with its options and, possibly, subcommands, one of which is then required.
class Command {
 public:
  /// Adds the command `name`; `summary` is its line in the help.
  Command command(const std::string& name, const std::string& summary);

  /// Adds an option, "--name" or "-n,--name", or "NAME" for a positional argument. `into` must outlive the command
  /// line, and is unchanged if the option is absent.
  void option(const std::string& name, Destination into, const std::string& meaning, const OptionRules& rules = {});

  /// Adds text below the options in the help.
  void footer(const std::string& text);

  /// Sets the action of the command; it returns the exit status.
  void action(std::function<int()> run);

 private:
  friend class CommandLine;
  Command(CLI::App* app, CommandChoices* choices) : app_(app), choices_(choices) {}

  CLI::App* app_;
  CommandChoices* choices_;
};

/// Command line of the program `name`.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();

  /// Returns the program itself, to add commands to.
  Command program() { return {app_.get(), &choices_}; }

  /// Returns the help of the program, or of a command given by words: "probe", "model". Throws Error if there is none.
  std::string help(const std::vector<std::string>& words) const;

  /// Returns the program with all commands.
  CommandOutline outline() const;

  /// Adds an option to all existing commands without subcommands.
  void option_of_all(const std::string& name, Destination into, const std::string& meaning, const OptionRules& rules);

  /// Calls first(command name), runs the command and returns its exit status. Throws Error for an invalid command line.
  int run(int argc, char** argv, const std::function<void(const std::string&)>& first);

 private:
  std::unique_ptr<CLI::App> app_;
  CommandChoices choices_;
};

}  // namespace heed::cli
