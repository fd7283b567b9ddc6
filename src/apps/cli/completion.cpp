// heed completion: shell scripts that complete heed's command line, generated from the commands.
#include "src/apps/cli/shared/commands.h"

#include <fmt/ranges.h>

#include <iostream>

namespace heed::cli {

namespace {

std::string spaced(const std::vector<std::string>& words) { return fmt::format("{}", fmt::join(words, " ")); }

/// Adds cases of the bash script: the words that may follow each command, and the values of its options.
void add_cases(const CommandOutline& command, const std::string& path, std::string& words, std::string& values) {
  std::vector<std::string> all, plain;
  for (const CommandOutline& one : command.commands) plain.push_back(one.name);
  for (const CommandOutline::Option& option : command.options) {
    all.insert(all.end(), option.names.begin(), option.names.end());
    if (option.names.empty()) plain.insert(plain.end(), option.offered.begin(), option.offered.end());
    if (option.names.empty() || option.flag) continue;
    for (const std::string& name : option.names)
      values += fmt::format("    '{} {}') words='{}' ;;\n", path, name, spaced(option.offered));
  }
  words += fmt::format("    '{}') options='{}' words='{}' ;;\n", path, spaced(all), spaced(plain));
  for (const CommandOutline& one : command.commands)
    add_cases(one, path.empty() ? one.name : path + " " + one.name, words, values);
}

constexpr const char* script = R"(# bash completion for heed, written by `heed completion bash`.
_heed() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} at=$COMP_CWORD key= before command= options= words= i
  # Bash splits KEY=VALUE into three words, or into two if nothing follows the "=". The last one is completed.
  if [[ $word == = ]]; then
    word= key=${{COMP_WORDS[at - 1]}}= at=$((at - 1))
  elif [[ ${{COMP_WORDS[at - 1]}} == = ]]; then
    key=${{COMP_WORDS[at - 2]}}= at=$((at - 2))
  fi
  before=${{COMP_WORDS[at - 1]}}
  if [[ $key == -* ]]; then
    before=${{key%=}} key=
  fi
  for ((i = 1; i < COMP_CWORD; ++i)); do
    case "${{command:+$command }}${{COMP_WORDS[i]}}" in
      {0}) command="${{command:+$command }}${{COMP_WORDS[i]}}" ;;
    esac
  done
  case "$command" in
{1}  esac
  if [[ $word == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$word"))
    return
  fi
  case "$command $before" in
{2}  esac
  # Keys are offered first, and values once the word contains "=".
  local list=($words)
  if [[ $key$word == *=* ]]; then list=("${{list[@]/%*=/}}"); else list=("${{list[@]/*=?*/}}"); fi
  COMPREPLY=($(compgen -W "${{list[*]}}" -- "$key$word"))
  COMPREPLY=("${{COMPREPLY[@]#"$key"}}")
  if [[ ${{#COMPREPLY[@]}} == 1 && $COMPREPLY == *= ]]; then compopt -o nospace; fi
}}
complete -o default -F _heed heed
)";

/// Returns a shell pattern of the valid commands: "'eval' | 'probe' | 'probe model'".
std::string paths(const CommandOutline& command, const std::string& path) {
  std::string all;
  for (const CommandOutline& one : command.commands) {
    const std::string own = path.empty() ? one.name : path + " " + one.name, below = paths(one, own);
    all += fmt::format("{}'{}'{}{}", all.empty() ? "" : " | ", own, below.empty() ? "" : " | ", below);
  }
  return all;
}

}  // namespace

void add_completion(Command program, const CommandLine& line) {
  static std::string shell;
  Command command = program.command("completion", "Write the script for command-line completion");
  command.option("SHELL", &shell, "bash", {.required = true, .one_of = {"bash"}});
  command.footer(
      "For one shell: eval \"$(heed completion bash)\". For all shells: `make install` installs it for bash.");
  command.action([&line] {
    const CommandOutline program = line.outline();
    std::string words, values;
    add_cases(program, "", words, values);
    std::cout << fmt::format(script, paths(program, ""), words, values);
    return ok;
  });
}

}  // namespace heed::cli
