// Check of stated costs: compares an operation's closed forms with the operations that its code executes.
#pragma once

#include "heed/checks/gradcheck.h"

#include <span>

namespace heed {

/// The stated and the executed cost of a case, for one pass.
struct CheckedCost {
  std::string operation, setting;
  /// "forward" or "backward"; for mechanisms also "forward_contractions", "backward_contractions" and "attention_exp".
  const char* pass = "";
  Counts stated, executed;
  std::vector<std::pair<char, Index>> sizes{};
  /// True if the stated cost may be anywhere between two limits; `executed` is then the stated cost or, if that is
  /// outside the limits, the nearer limit.
  bool bounded = false;
  bool passed() const { return stated == executed; }
};

/// Runs a case, forward and backward, on the counting number type (cost/counted.h), on one thread.
std::vector<CheckedCost> costcheck(const CheckCase& c);

/// A count whose executed and stated values differ in at least one shape of a setting.
struct CostError {
  std::string operation, setting, pass, count;  ///< operation: the case with the counts below; count: "mul", ...
  Index stated = 0, executed = 0;
  std::string difference;        ///< executed - stated in N, M, d, as "2 H N d"; empty if no simple form fits
  bool below_its_limit = false;  ///< the stated count is below its lower limit, `executed`
};

/// Returns one error per setting, pass and kind of operation whose counts differ, with the counts of the shape that has
/// the largest difference.
std::vector<CostError> cost_errors(std::span<const CheckedCost> rows);

}  // namespace heed
