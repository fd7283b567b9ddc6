// Text output of gradient, cost and memory checks.
#pragma once

#include "heed/checks/backward_steps.h"
#include "heed/checks/costcheck.h"

#include <ostream>

namespace heed {

/// A memory fault and the case that showed it.
struct MemoryFault {
  std::string operation, fault;
};

/// Findings of the checks of memory, gradients and costs.
struct CheckFindings {
  std::vector<MemoryFault> faults;
  std::vector<CheckRow> gradients;
  std::vector<CheckedCost> costs;

  /// Returns true if there are no faults and all gradients and costs are right.
  bool passed() const;
};

/// Returns the subject of a case: "softmax" for "softmax, causal=true, N > d".
std::string subject_of(const std::string& operation);

/// Returns the backward steps, from the mechanism's source, that compute a row's gradient or, for a row of the step dS,
/// the gradient of S. Empty for a row of a forward step, and if the source is unknown.
std::vector<BackwardStep> steps_of(const CheckRow& row);

/// Prints the table of gradients, the diagnosis of each wrong one, and the wrong costs. With `numbers`, also
/// prints wrong elements beside the expected ones. Memory faults are not printed.
void print_findings(std::ostream& out, const CheckFindings& found, bool numbers = false);

/// Checks gradients and costs of a case and prints the findings. Returns true if all are correct.
bool print_gradcheck(std::ostream& out, const CheckCase& c);

}  // namespace heed
