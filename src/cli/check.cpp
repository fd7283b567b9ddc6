// heed gradcheck.
#include "commands.h"

#include "heed/checks/gradcheck.h"
#include "heed/base/suggest.h"

#include <fmt/format.h>

#include <algorithm>
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
  std::sort(known.begin(), known.end());
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

}  // namespace

void add_gradcheck(Command program) {
  static std::vector<std::string> names;
  static bool all = false;
  Command command = program.command("gradcheck", "Compare hand-written gradients with central differences");
  command.option("NAME", &names, "operations and mechanisms, such as layer_norm or softmax",
                 {.offered = mechanism_names()});
  command.option("--all", &all, "all of them (as without NAME)", {.excludes = "NAME"});
  command.action([] { return gradcheck_command(names); });
}

}  // namespace heed::cli
