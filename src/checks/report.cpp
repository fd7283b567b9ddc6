#include "heed/checks/report.h"

#include "composition.h"

#include "heed/attention/plugin.h"
#include "heed/config/installed.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

namespace heed {

namespace {

/// Returns a mechanism's source, empty if it is not found: an installed program lacks heed's own sources.
std::string source_of(const std::string& mechanism) {
  const PluginOrigin* const plugin = plugin_of(mechanism);
  return source_with_includes(plugin ? plugin->source : find_installed(mechanism_page(mechanism)));
}

/// Wrong gradients of one tensor with the same pattern, in one or more cases; `shown` is the row with the most
/// elements up to a thousand, since patterns in more are long to describe.
struct WrongGradient {
  const CheckRow* shown;
  std::set<std::string> operations;
  std::vector<std::string> factors;  ///< explanations of the factor that fit all cases
};

std::vector<WrongGradient> wrong_gradients(const std::vector<CheckRow>& rows) {
  std::vector<WrongGradient> wrong;
  for (const CheckRow& row : rows) {
    if (row.passed) continue;
    const auto alike = [&](const WrongGradient& w) {
      return subject_of(w.shown->operation) == subject_of(row.operation) && w.shown->tensor == row.tensor &&
             w.shown->diagnosis.kind == row.diagnosis.kind;
    };
    const auto found = std::ranges::find_if(wrong, alike);
    WrongGradient& w =
        found != wrong.end() ? *found : wrong.emplace_back(WrongGradient{&row, {}, row.diagnosis.factors});
    std::erase_if(w.factors, [&](const std::string& factor) {
      const std::vector<std::string>& here = row.diagnosis.factors;
      return std::ranges::find(here, factor) == here.end();
    });
    const auto rank = [](const CheckRow& r) { return r.elements <= 1000 ? r.elements : 0; };
    if (rank(row) > rank(*w.shown)) w.shown = &row;
    w.operations.insert(row.operation);
  }
  return wrong;
}

/// Returns the tensors of a subject whose gradients are correct in all cases. Surrogate gradients are not compared with
/// derivatives, so they are never listed as correct, but they can be found wrong.
std::vector<std::string> right_tensors(const std::vector<CheckRow>& rows, const std::string& subject) {
  std::map<std::string, bool> right;
  for (const CheckRow& row : rows)
    if (!row.step && subject_of(row.operation) == subject && (row.note.empty() || !row.passed))
      right.try_emplace(row.tensor, true).first->second &= row.passed;
  std::vector<std::string> names;
  for (const auto& [name, passed] : right)
    if (passed) names.push_back(name);
  return names;
}

/// Maximum number of wrong elements shown, each with its expected value, from the matrix that contains the worst
/// element.
constexpr std::size_t shown_numbers = 20;

void print_numbers(std::ostream& out, const CheckRow& row) {
  const Shape& shape = row.all_got.shape();
  const Index matrix = shape.rank() < 2 ? row.elements : shape[-1] * shape[-2];
  const std::vector<Index>& worst = row.diagnosis.worst;
  std::vector<std::pair<std::string, Index>> lines;
  std::size_t width = 5;
  for (Index i = 0; i < row.elements && lines.size() < shown_numbers; ++i) {
    const std::vector<Index> place = place_of(shape, i);
    const std::size_t outer = worst.size() < 2 ? 0 : worst.size() - 2;
    if (matrix < row.elements &&
        !std::equal(worst.begin(), worst.begin() + static_cast<std::ptrdiff_t>(outer), place.begin()))
      continue;
    if (row.same(row.all_got[i], row.all_expected[i])) continue;
    lines.emplace_back(place_text(row.axes, place), i);
    width = std::max(width, lines.back().first.size());
  }
  out << fmt::format("  {:<{}}  {:>14}  {:>14}  {:>14}  {:>14}\n", "place", width, "got", "expected", "got - expected",
                     "got / expected");
  for (const auto& [place, i] : lines) {
    const double got = row.all_got[i], expected = row.all_expected[i];
    out << fmt::format("  {:<{}}  {:>14.7g}  {:>14.7g}  {:>14.7g}  {:>14.7g}\n", place, width, got, expected,
                       got - expected, got / expected);
  }
}

void print_gradient(std::ostream& out, const WrongGradient& wrong, bool numbers) {
  const CheckRow& row = *wrong.shown;
  const Diagnosis& d = row.diagnosis;
  out << fmt::format("\n{}: {} {} is wrong in {} of {} elements\n  looks  {}\n", row.operation,
                     row.step ? "the step" : "the gradient of", row.tensor, d.wrong, d.elements, d.looks);
  if (wrong.operations.size() > 1 && !wrong.factors.empty())
    out << fmt::format("  always {}\n", fmt::join(wrong.factors, ", or "));
  if (!d.right.empty()) out << fmt::format("  right  {}\n", d.right);
  if (!d.worst.empty())
    out << fmt::format("  worst  {}: got {:.7g}, expected {:.7g}\n", place_text(row.axes, d.worst), d.got, d.expected);
  const std::vector<BackwardStep> steps = steps_of(row);
  for (const BackwardStep& step : steps) out << fmt::format("  step   undoing {}: {}\n", step.number, step.text);
  for (const BackwardStep& step : steps_before(source_of(subject_of(row.operation)), steps))
    out << fmt::format("  or     undoing {}: {}\n", step.number, step.text);
  if (wrong.operations.size() > 1)
    out << fmt::format("  also   in {} other case{}\n", wrong.operations.size() - 1,
                       wrong.operations.size() == 2 ? "" : "s");
  if (numbers) print_numbers(out, row);
}

void print_costs(std::ostream& out, const std::vector<CheckedCost>& costs) {
  const Index right = std::ranges::count_if(costs, &CheckedCost::passed);
  out << fmt::format("{} of {} stated costs agree with the executed operations\n", right, costs.size());
  for (const CostError& e : cost_errors(costs)) {
    const bool of_pass = e.pass == "forward" || e.pass == "backward";
    const bool least = e.below_its_limit;
    out << fmt::format("\n{}: {}{} is wrong in {}\n  stated {}, {} {}: {} too {}\n", e.operation,
                       of_pass ? "the cost of " : "", e.pass, e.count, e.stated,
                       least ? "expected at least" : "executed", e.executed, std::abs(e.executed - e.stated),
                       e.executed > e.stated ? "few" : "many");
    if (!e.difference.empty())
      out << fmt::format("  {} - stated = {} for all shapes\n", least ? "limit" : "executed", e.difference);
  }
}

/// Prints a line for each row, then the number of rows that agree with each kind of reference.
void print_table(std::ostream& out, const std::vector<CheckRow>& rows) {
  std::size_t operation_width = 9, tensor_width = 6;
  for (const CheckRow& row : rows) {
    operation_width = std::max(operation_width, row.operation.size());
    tensor_width = std::max(tensor_width, row.tensor.size());
  }
  out << fmt::format("{:<{}}  {:<{}}  {:>8}  {:>9}  {:>9}  {:>6}  {:>14}  {:>14}\n", "operation", operation_width,
                     "tensor", tensor_width, "elements", "absolute", "relative", "index", "got", "expected");
  Index agree = 0, of = 0, agree_composed = 0, of_composed = 0, noted = 0;
  for (const CheckRow& row : rows) {
    const char* const verdict = row.passed ? "" : "  FAILED";
    if (row.note.empty())
      out << fmt::format("{:<{}}  {:<{}}  {:>8}  {:>9.1e}  {:>9.1e}  {:>6}  {:>14.7g}  {:>14.7g}{}\n", row.operation,
                         operation_width, row.tensor, tensor_width, row.elements, row.absolute, row.relative,
                         row.index < 0 ? "all" : std::to_string(row.index), row.got, row.expected, verdict);
    else
      out << fmt::format("{:<{}}  {:<{}}  {:>8}  {}{}\n", row.operation, operation_width, row.tensor, tensor_width,
                         row.elements, row.note, verdict);
    const bool differences = row.reference == CheckReference::differences;
    (differences ? of : of_composed) += row.note.empty();
    (differences ? agree : agree_composed) += row.passed && row.note.empty();
    noted += !row.note.empty();
  }
  out << fmt::format("{} of {} gradients agree with central differences to {:.0e}\n", agree, of, gradcheck_tolerance);
  if (of_composed > 0)
    out << fmt::format("{} of {} gradients and steps agree with the composed form to {:.0e}\n", agree_composed,
                       of_composed, composition_tolerance);
  if (noted > 0)
    out << fmt::format("surrogate gradients, as noted: {}; not compared with central differences\n", noted);
}

}  // namespace

bool CheckFindings::passed() const {
  return faults.empty() && std::ranges::all_of(gradients, &CheckRow::passed) &&
         std::ranges::all_of(costs, &CheckedCost::passed);
}

std::vector<BackwardStep> steps_of(const CheckRow& row) {
  if (row.step && !row.tensor.starts_with('d')) return {};  // a step of the forward pass
  return backward_steps(source_of(subject_of(row.operation)), row.step ? row.tensor.substr(1) : row.tensor);
}

std::string subject_of(const std::string& operation) { return operation.substr(0, operation.find(',')); }

void print_findings(std::ostream& out, const CheckFindings& found, bool numbers) {
  if (!found.faults.empty()) out << "Gradients and costs are checked after these faults are fixed.\n";
  print_table(out, found.gradients);
  print_costs(out, found.costs);
  const std::vector<WrongGradient> wrong = wrong_gradients(found.gradients);
  for (const WrongGradient& w : wrong) print_gradient(out, w, numbers);
  std::set<std::string> subjects;
  for (const WrongGradient& w : wrong) {
    const std::string subject = subject_of(w.shown->operation);
    const std::vector<std::string> right = right_tensors(found.gradients, subject);
    if (subjects.insert(subject).second && !right.empty())
      out << fmt::format("\n{}: the gradients of {} are right\n", subject, fmt::join(right, ", "));
  }
}

bool print_gradcheck(std::ostream& out, const CheckCase& c) {
  const CheckFindings found{{}, gradcheck(c), costcheck(c)};
  print_findings(out, found);
  return found.passed();
}

}  // namespace heed
