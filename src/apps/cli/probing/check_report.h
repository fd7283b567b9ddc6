// The findings of heed gradcheck, as text for a terminal and as JSON.
#pragma once

#include "heed/checks/costcheck.h"
#include "heed/io/json.h"

#include <ostream>

namespace heed::cli {

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

/// The table of gradients, what each wrong one looks like, and costs that are wrong. With `numbers` also the numbers of
/// each wrong gradient, side by side. Misuses of memory are said when they are found.
void print_findings(std::ostream& out, const CheckFindings& found, bool numbers);

/// All of it, for `heed gradcheck --json`.
Json json_of(const CheckFindings& found);

}  // namespace heed::cli
