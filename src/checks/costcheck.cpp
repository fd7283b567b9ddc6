#include "heed/checks/costcheck.h"

#include "closed_form.h"

#include "heed/base/with_threads.h"
#include "heed/cost/energy.h"

#include <algorithm>

namespace heed {

namespace {

/// Returns one multiply-add per element that is a product, since such an element may be a sum of one term.
Counts products_of(const View<const Counted>& x) {
  const Index products = std::count_if(x.begin(), x.end(), [](Counted y) { return y.is_product(); });
  return {.mul = products, .add = products};
}

/// Returns the stated contractions, clamped between `least` and all executed operations. The upper limit of additions
/// includes the multiplications, since papers count an addition for the first term of a sum, too.
Counts limited(const Counts& stated, const Counts& least, const Counts& all) {
  const auto between = [](Index x, Index low, Index high) { return std::min(std::max(x, low), high); };
  return {.mul = between(stated.mul, least.mul, all.mul), .add = between(stated.add, least.add, all.add + all.mul)};
}

/// Returns an eighth of the executed contractions, a lower limit of the stated ones. Recomputation and running sums
/// execute up to four times as many as papers count; the limit has a margin of two.
Counts eighth(const Counts& contractions) { return {.mul = contractions.mul / 8, .add = contractions.add / 8}; }

}  // namespace

std::vector<CheckedCost> costcheck(const CheckCase& c) {
  const WithThreads alone(1);  // tallies are per thread
  const std::vector<Tensor<Counted>> inputs = draw_inputs<Counted>(c, 1);
  std::vector<TraceEntry> trace;
  Tape<Counted> tape({.training = c.training, .random = RandomStream(1), .observers = {.trace = &trace}});
  std::vector<Var<Counted>> variables;
  for (const auto& input : inputs) variables.push_back(tape.input(input.view()));
  const auto row = [&](const char* pass, const Counts& stated, const Counts& executed, bool bounded = false) {
    return CheckedCost{c.name, c.setting, pass, stated, executed, c.sizes, bounded};
  };
  Counted::tally() = {}, Counted::contractions() = {};
  const Var<Counted> y = c.in_counted(tape, variables);
  const Counts forward = Counted::tally(), contractions = Counted::contractions();
  const Tensor<Counted> cotangent(y.shape());
  Counted::tally() = {}, Counted::contractions() = {};
  tape.backward(y, cotangent.view());
  const Counts backward = Counted::tally(), backward_contractions = Counted::contractions();
  Cost stated = c.unstated;
  for (const TraceEntry& entry : trace) stated += entry.cost;
  std::vector<CheckedCost> rows{row("forward", stated.forward, forward), row("backward", stated.backward, backward)};
  if (!c.of_attention) return rows;
  const Counts& left = stated.left_out;
  Counts papers = limited(contractions + Counts{.mul = -left.mul, .add = -left.add}, eighth(contractions), 2 * forward);
  if (stated.bounded)
    papers = limited(stated.forward_contractions, eighth(papers), forward);
  else if (const Counts more = papers + products_of(y.value()); stated.forward_contractions == more)
    papers = more;
  rows.push_back(row("forward_contractions", stated.forward_contractions, papers, stated.bounded));
  // Papers count neither the recomputations nor the inner products of a backward pass. If they count nothing in the
  // forward pass, they count nothing in the backward pass either.
  Counts least = eighth(backward_contractions);
  least.mul = std::min(least.mul, stated.forward_contractions.mul);
  least.add = std::min(least.add, stated.forward_contractions.add);
  rows.push_back(row("backward_contractions", stated.backward_contractions,
                     limited(stated.backward_contractions, least, backward), true));
  rows.push_back(
      row("attention_exp", {.exp = stated.attention_exp}, {.exp = std::min(forward.exp - left.exp, forward.exp)}));
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
      error.below_its_limit = row.bounded && error.executed > error.stated;
      errors.push_back(std::move(error));
    }
  return errors;
}

}  // namespace heed
