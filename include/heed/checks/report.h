// The findings of gradient, cost and memory checks as text.
#pragma once

#include "heed/checks/backward_steps.h"
#include "heed/checks/costcheck.h"

#include <ostream>

namespace heed {

/// A misuse of memory, and the case that showed it.
struct MemoryFault {
  std::string operation, fault;
};

struct CheckFindings {
  std::vector<MemoryFault> faults;
  std::vector<CheckRow> gradients;
  std::vector<CheckedCost> costs;

  bool passed() const;
};

/// Returns the subject of a case: "softmax" for "softmax, causal=true, N > d".
std::string subject_of(const std::string& operation);

/// Returns the steps of the backward pass that a row belongs to, from the mechanism's source; none if it has none.
std::vector<BackwardStep> steps_of(const CheckRow& row);

/// Prints the table of gradients, what each wrong one looks like, and the costs that are wrong. With `numbers` also the
/// numbers of each wrong gradient beside the expected ones. Faults of memory are not printed.
void print_findings(std::ostream& out, const CheckFindings& found, bool numbers = false);

/// Checks gradients and costs of a case and prints the findings. Returns true if all are right.
bool print_gradcheck(std::ostream& out, const CheckCase& c);

}  // namespace heed
