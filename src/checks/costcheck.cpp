#include "heed/checks/costcheck.h"

#include "closed_form.h"

#include "heed/base/with_threads.h"
#include "heed/cost/energy.h"

#include <algorithm>

namespace heed {

namespace {

/// Returns a multiply-add for each element that is a product, since it may be a sum of one term.
Counts products_of(const View<const Counted>& x) {
  const Index products = std::count_if(x.begin(), x.end(), [](Counted y) { return y.is_product(); });
  return {.mul = products, .add = products};
}

/// Returns the contractions, each kind limited to `most`.
Counts at_most(const Counts& contractions, const Counts& most) {
  return {.mul = std::min(contractions.mul, most.mul), .add = std::min(contractions.add, most.add)};
}

}  // namespace

std::vector<CheckedCost> costcheck(const CheckCase& c) {
  const WithThreads alone(1);  // tallies are per thread
  const std::vector<Tensor<Counted>> inputs = draw_inputs<Counted>(c, 1);
  std::vector<TraceEntry> trace;
  Tape<Counted> tape({.training = c.training, .random = RandomStream(1), .observers = {.trace = &trace}});
  std::vector<Var<Counted>> variables;
  for (const auto& input : inputs) variables.push_back(tape.input(input.view()));
  const auto row = [&](const char* pass, const Counts& stated, const Counts& executed) {
    return CheckedCost{.operation = c.name,
                       .setting = c.setting,
                       .pass = pass,
                       .stated = stated,
                       .executed = executed,
                       .sizes = c.sizes};
  };
  Counted::tally() = {}, Counted::contractions() = {};
  const Var<Counted> y = c.in_counted(tape, variables);
  const Counts forward = Counted::tally(), contractions = Counted::contractions();
  const Tensor<Counted> cotangent(y.shape());
  Counted::tally() = {}, Counted::contractions() = {};
  tape.backward(y, cotangent.view());
  const Counts backward = Counted::tally();
  Cost stated = c.unstated;
  for (const TraceEntry& entry : trace) stated += entry.cost;
  std::vector<CheckedCost> rows{row("forward", stated.forward, forward), row("backward", stated.backward, backward)};
  if (!c.of_attention) return rows;
  const Counts& left = stated.left_out;
  Counts papers = contractions + Counts{.mul = -left.mul, .add = -left.add};
  if (stated.bounded)
    papers = at_most(stated.forward_contractions, {.mul = forward.mul, .add = forward.add + forward.mul});
  else if (const Counts more = papers + products_of(y.value()); stated.forward_contractions == more)
    papers = more;
  rows.push_back(row("forward_contractions", stated.forward_contractions, papers));
  // Papers count neither recomputations in a backward pass nor its inner products. They count an addition for the first
  // term of a sum, too.
  const Counts all{.mul = backward.mul, .add = backward.add + backward.mul};
  rows.push_back(
      row("backward_contractions", stated.backward_contractions, at_most(stated.backward_contractions, all)));
  rows.push_back(row("attention_exp", {.exp = stated.attention_exp}, {.exp = forward.exp - left.exp}));
  return rows;
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
        // Selects the first of the rows with the largest difference.
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
