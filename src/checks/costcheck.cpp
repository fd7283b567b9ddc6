#include "heed/checks/costcheck.h"

#include "closed_form.h"

#include "heed/base/with_threads.h"
#include "heed/cost/energy.h"

namespace heed {

std::vector<CheckedCost> costcheck(const CheckCase& c) {
  const WithThreads alone(1);  // each thread counts for itself
  const std::vector<Tensor<Counted>> inputs = draw_inputs<Counted>(c, 1);
  std::vector<TraceEntry> trace;
  Tape<Counted> tape({.training = c.training, .random = RandomStream(1), .observers = {.trace = &trace}});
  std::vector<Var<Counted>> variables;
  for (const auto& input : inputs) variables.push_back(tape.input(input.view()));
  CheckedCost forward{
      .operation = c.name, .setting = c.setting, .pass = "forward", .stated = {}, .executed = {}, .sizes = c.sizes};
  CheckedCost backward = forward;
  backward.pass = "backward";
  Counted::tally() = {};
  const Var<Counted> y = c.in_counted(tape, variables);
  forward.executed = Counted::tally();
  const Tensor<Counted> cotangent(y.shape());
  Counted::tally() = {};
  tape.backward(y, cotangent.view());
  backward.executed = Counted::tally();
  for (const TraceEntry& entry : trace) {
    forward.stated += entry.cost.forward;
    backward.stated += entry.cost.backward;
  }
  forward.stated += c.unstated.forward;
  backward.stated += c.unstated.backward;
  return {forward, backward};
}

std::vector<CostError> cost_errors(std::span<const CheckedCost> rows) {
  std::vector<CostError> errors;
  for (const CheckedCost& row : rows)
    for (const CountKind& kind : count_kinds) {
      const auto difference = [&](const CheckedCost& r) { return r.executed.*kind.member - r.stated.*kind.member; };
      const auto alike = [&](const CheckedCost& r) {
        return std::string_view(r.pass) == row.pass && r.setting == row.setting &&
               (!r.setting.empty() || r.operation == row.operation);
      };
      if (difference(row) == 0) continue;
      CostError error{
          row.operation, row.setting, row.pass, kind.name, row.stated.*kind.member, row.executed.*kind.member, ""};
      std::vector<SizedNumber> numbers;
      bool largest = true;
      for (const CheckedCost& other : rows) {
        if (!alike(other)) continue;
        numbers.push_back({other.sizes, difference(other)});
        // The first of those that differ most.
        const Index a = std::abs(difference(other)), b = std::abs(difference(row));
        largest &= a < b || (a == b && &other >= &row);
      }
      if (!largest) continue;
      error.difference = closed_form(numbers);
      errors.push_back(std::move(error));
    }
  return errors;
}

}  // namespace heed
