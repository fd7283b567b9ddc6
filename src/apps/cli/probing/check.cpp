// heed gradcheck: checks of gradients, memory accesses and stated costs.
#include "src/apps/cli/shared/commands.h"
#include "src/apps/cli/shared/table.h"

#include "heed/base/suggest.h"
#include "heed/checks/report.h"

#include <algorithm>
#include <cmath>
#include <iostream>
#include <set>

namespace heed::cli {

namespace {

/// Returns true if `name` is the case's name, with or without its options.
bool belongs(const CheckCase& c, const std::string& name) { return c.name == name || c.name.starts_with(name + ","); }

Json number(double x) { return std::isfinite(x) ? Json(x) : Json(); }

Json json_of(const CheckRow& row) {
  Json json = Json::object(
      {{"operation", row.operation}, {"tensor", row.tensor}, {"elements", row.elements}, {"passed", row.passed}});
  if (!row.note.empty()) json["note"] = row.note;
  if (row.reference == CheckReference::composed_form) json["reference"] = "composed form";
  json["absolute"] = number(row.absolute);
  json["relative"] = number(row.relative);
  if (row.passed) return json;
  const Diagnosis& d = row.diagnosis;
  Json place;
  for (std::size_t axis = 0; axis < d.worst.size(); ++axis) place[row.axes[axis]] = d.worst[axis];
  Json steps = Json::list();
  for (const BackwardStep& step : steps_of(row))
    steps.push_back(Json::object({{"undoing", step.number}, {"text", step.text}}));
  json["diagnosis"] = Json::object(
      {{"wrong", d.wrong},
       {"kind", name_of(d.kind)},
       {"looks", d.looks},
       {"right", d.right},
       {"worst", Json::object({{"place", place}, {"got", number(d.got)}, {"expected", number(d.expected)}})},
       {"steps", steps}});
  return json;
}

Json json_of(const CheckFindings& found) {
  Table faults, costs, errors;
  faults.data({"operation", "fault"});
  for (const auto& [operation, fault] : found.faults) faults.add({operation, fault});
  Json gradients = Json::list();
  for (const CheckRow& row : found.gradients) gradients.push_back(json_of(row));
  costs.data({"operation", "pass", "passed"});
  for (const CheckedCost& row : found.costs) costs.add({row.operation, row.pass, row.passed()});
  errors.data({"operation", "pass", "count", "stated", "executed", "difference"});
  for (const CostError& e : cost_errors(found.costs))
    errors.add({e.operation, e.pass, e.count, e.stated, e.executed, e.difference.empty() ? Json() : e.difference});
  return Json::object({{"passed", found.passed()},
                       {"memory", faults.json()},
                       {"gradients", gradients},
                       {"costs", costs.json()},
                       {"cost_errors", errors.json()}});
}

int gradcheck_command(const std::vector<std::string>& names, bool explain, bool json) {
  const std::vector<CheckCase> cases = all_check_cases();
  std::set<std::string> known;
  for (const CheckCase& c : cases) known.insert(subject_of(c.name));
  for (const std::string& name : names)
    require(std::ranges::any_of(cases, [&](const CheckCase& c) { return belongs(c, name); }),
            "gradcheck: unknown operation or mechanism '{}'{}; --plugin FILE or HEED_PLUGINS adds mechanisms", name,
            suggestion(name, {known.begin(), known.end()}));
  const auto asked_for = [&](const CheckCase& c) {
    return names.empty() || std::ranges::any_of(names, [&](const auto& name) { return belongs(c, name); });
  };
  CheckFindings found;
  // A case that overruns its memory may crash without the guard regions, so the gradients and costs of its operation
  // are not checked. In another shape it may write even beyond the guard regions.
  std::set<std::string> faulty, overrun;
  for (const CheckCase& c : cases)
    if (asked_for(c) && c.memory_faults && !overrun.contains(subject_of(c.name)))
      for (const std::string& fault : c.memory_faults()) {
        if (!json) std::cout << fault << " (" << c.name << ")" << std::endl;  // flushed, since the next case may crash
        found.faults.push_back({c.name, fault});
        faulty.insert(subject_of(c.name));
        if (fault.find(" writes outside ") != std::string::npos) overrun.insert(subject_of(c.name));
      }
  for (const CheckCase& c : cases) {
    if (!asked_for(c) || faulty.contains(subject_of(c.name))) continue;
    for (CheckRow& row : gradcheck(c)) found.gradients.push_back(std::move(row));
    for (CheckedCost& row : costcheck(c)) found.costs.push_back(std::move(row));
  }
  if (json) {
    std::cout << json_of(found).dump(2) << "\n";
  } else {
    print_findings(std::cout, found, explain);
    if (!explain && !std::ranges::all_of(found.gradients, &CheckRow::passed))
      std::cout << "\n--explain shows the numbers side by side\n";
  }
  return found.passed() ? ok : check_failed;
}

}  // namespace

void add_gradcheck(Command program) {
  static std::vector<std::string> names;
  static bool all = false, explain = false, json = false;
  Command command = program.command(
      "gradcheck", "Compare hand-written gradients with central differences, and stated costs with counts");
  command.option("NAME", &names, "operations and mechanisms, such as layer_norm or softmax",
                 {.offered = mechanism_names()});
  command.option("--all", &all, "check all (default without NAME)", {.excludes = "NAME"});
  command.option("--explain", &explain, "print wrong gradients beside the expected values");
  command.option("--json", &json, "print the findings as JSON", {.excludes = "--explain"});
  command.footer(
      "The description of an error gives its location, the likely mistake, and the step of the backward pass that "
      "it belongs to (docs/gradcheck.md).");
  command.action([] { return gradcheck_command(names, explain, json); });
}

}  // namespace heed::cli
