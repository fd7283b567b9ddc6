// heed gradcheck and heed list.
#include "commands.h"

#include "heed/attention/mechanism.h"
#include "heed/checks/gradcheck.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>

#include <iostream>
#include <set>

namespace heed::cli {

namespace {

/// Does a case belong to `name`: is it called so, or so up to its options?
bool belongs(const CheckCase& c, const std::string& name) { return c.name == name || c.name.starts_with(name + ","); }

int gradcheck_command(const std::vector<std::string>& names) {
  const std::vector<CheckCase> cases = all_check_cases();
  std::vector<std::string> known;
  for (const CheckCase& c : cases) known.push_back(c.name.substr(0, c.name.find(',')));
  known.erase(std::unique(known.begin(), known.end()), known.end());
  for (const std::string& name : names)
    require(std::any_of(cases.begin(), cases.end(), [&](const CheckCase& c) { return belongs(c, name); }),
            "gradcheck: nothing is called '{}'{}", name, suggestion(name, known));
  const auto asked_for = [&](const CheckCase& c) {
    return names.empty() || std::any_of(names.begin(), names.end(), [&](const auto& name) { return belongs(c, name); });
  };
  const auto subject = [](const CheckCase& c) { return c.name.substr(0, c.name.find(',')); };
  // What overruns its memory may end the program when it runs unwatched, so it does not run again.
  std::set<std::string> faulty;
  for (const CheckCase& c : cases)
    if (asked_for(c) && c.memory_faults)
      for (const std::string& fault : c.memory_faults()) {
        std::cout << fault << " (" << c.name << ")" << std::endl;
        faulty.insert(subject(c));
      }
  std::vector<CheckRow> rows;
  for (const CheckCase& c : cases)
    if (asked_for(c) && !faulty.contains(subject(c)))
      for (const CheckRow& row : gradcheck(c)) rows.push_back(row);
  return print_gradcheck(std::cout, rows) && faulty.empty() ? ok : check_failed;
}

int list_command() {
  for (const MechanismEntry& entry : mechanisms()) {
    std::cout << fmt::format("{:<12}  {}\n{:14}{}\n", entry.name, entry.summary, "", entry.complexity);
    for (const OptionInfo& option : entry.options())
      std::cout << fmt::format("{:14}{:<20} {}{}\n", "", option.name + " = " + option.fallback, option.meaning,
                               option.choices.empty() ? "" : fmt::format(" ({})", fmt::join(option.choices, ", ")));
  }
  return ok;
}

/// Does it learn numbers for every pair of tokens? Then four times the tokens need sixteen times as many.
bool learns_pairs(const Mechanism& mechanism) {
  const auto numbers = [&](Index side) {
    const AttentionLayout layout = mechanism.layout(/*dim=*/64, /*heads=*/4);
    const AttentionShape shape = layout.among(side * side, {.grid_height = side, .grid_width = side});
    Index sum = 0;
    for (const ParameterSpec& spec : mechanism.parameters(shape)) sum += spec.shape.elements();
    return sum;
  };
  return numbers(64) > 8 * numbers(32);
}

/// For scripts: label, growth with tokens, NAME:OPTION=VALUE..., separated by tabs.
int list_settings() {
  for (const MechanismEntry& entry : mechanisms())
    for (const MechanismSetting& setting : entry.settings()) {
      std::string text = entry.name;
      for (const auto& [option, value] : setting.options) text += ":" + option + "=" + value;
      const char* const growth = setting.linear ? "linear" : "quadratic";
      std::cout << fmt::format("{}\t{}\t{}\n", setting.label,
                               learns_pairs(*entry.make(setting.options)) ? "matrix" : growth, text);
    }
  return ok;
}

}  // namespace

void add_gradcheck(Command program) {
  static std::vector<std::string> names;
  static bool all = false;
  Command command = program.command("gradcheck", "Compare hand-written gradients with central differences");
  command.option("NAME", &names, "operations and mechanisms, such as layer_norm or softmax");
  command.option("--all", &all, "all of them (as without NAME)", {.excludes = "NAME"});
  command.action([] { return gradcheck_command(names); });
}

void add_list(Command program) {
  static bool settings = false;
  Command command = program.command("list", "Show the attention mechanisms and their options");
  command.option("--settings", &settings,
                 "settings to compare instead, a line each: label; growth of time with tokens, or matrix where parameters "
                 "are tokens x tokens; NAME:OPTION=VALUE...");
  command.action([] { return settings ? list_settings() : list_command(); });
}

}  // namespace heed::cli
