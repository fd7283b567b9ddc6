// The command line: the commands, and the options that each takes. What parses it is known to command_line.cpp alone,
// whose library takes longer to compile than any command.
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

/// Destination of an option's value. A bool is a flag, whose option has no value; a list takes any number of values.
using Destination = std::variant<bool*, int*, Index*, double*, std::string*, std::vector<std::string>*,
                                 std::vector<Index>*, std::vector<double>*>;

/// The least and the largest value allowed.
struct Range {
  double least, most;
};

/// Constraints on an option's value beyond its type, and its name in the help.
struct OptionRules {
  const char* value = nullptr;  ///< "FILE" in --init FILE; by default the type
  bool required = false;
  bool positive = false;               ///< any number above 0
  std::optional<Range> range{};        ///< for a list: of each value
  std::vector<std::string> one_of{};   ///< for a list: each value is one of them
  bool commas = false;                 ///< a list's values may stand in one word: 64,128,256
  bool one_each = false;               ///< a list's option is repeated for each value, which is one word
  const char* excludes = nullptr;      ///< the option that cannot be given beside this one
  const char* needs = nullptr;         ///< the option that must be given too
  bool says_default = false;           ///< the help of a number ends with its default
  std::vector<std::string> offered{};  ///< values that a shell completes
};

/// A command as a shell sees it that completes words.
struct CommandOutline {
  struct Option {
    std::vector<std::string> names;    ///< "-o", "--output"; none of a word that stands by itself
    bool flag = false;                 ///< an option without a value
    std::vector<std::string> offered;  ///< values that it may have
  };
  std::string name;
  std::vector<Option> options;
  std::vector<CommandOutline> commands;
};

/// Result of parsing a command line, and the completions of its options.
struct CommandChoices {
  std::function<int()> chosen;                                ///< action of the given command
  std::map<const void*, std::vector<std::string>> offered{};  ///< values of an option
};

/// A command, with its options and perhaps with commands of its own, one of which must then be given.
class Command {
 public:
  /// Adds the command `name`; `summary` is its line in the help.
  Command command(const std::string& name, const std::string& summary);

  /// Adds an option, "--name" or "-n,--name", or "NAME" for a word that stands by itself. `into` must outlive the
  /// command line, and is left as it is where the option is not given.
  void option(const std::string& name, Destination into, const std::string& meaning, const OptionRules& rules = {});

  /// Adds text that stands below the options in the help.
  void footer(const std::string& text);

  /// Sets the action of the command; it returns the exit status.
  void action(std::function<int()> run);

 private:
  friend class CommandLine;
  Command(CLI::App* app, CommandChoices* choices) : app_(app), choices_(choices) {}

  CLI::App* app_;
  CommandChoices* choices_;
};

/// The command line of the program `name`.
class CommandLine {
 public:
  CommandLine(const std::string& name, const std::string& description, const std::string& version);
  ~CommandLine();

  /// The program itself, to add commands to.
  Command program() { return {app_.get(), &choices_}; }

  /// The help of the program, or of the command that the words name: "probe", "model". Throws Error if there is none.
  std::string help(const std::vector<std::string>& words) const;

  /// The program with all commands.
  CommandOutline outline() const;

  /// Adds an option to every command that there is.
  void option_of_all(const std::string& name, Destination into, const std::string& meaning, const OptionRules& rules);

  /// Calls first(name of the command), runs the command and returns its exit status. Throws Error for an unknown
  /// command or option.
  int run(int argc, char** argv, const std::function<void(const std::string&)>& first);

 private:
  std::unique_ptr<CLI::App> app_;
  CommandChoices choices_;
};

}  // namespace heed::cli
