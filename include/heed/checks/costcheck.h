// Check of stated costs: what an operation's closed forms say, against what its own code executes.
#pragma once

#include "heed/checks/gradcheck.h"

#include <span>

namespace heed {

/// A stated cost of a case, and what was executed.
struct CheckedCost {
  std::string operation, setting;
  const char* pass = "";  ///< "forward", "backward"; of mechanisms also "forward_contractions", "attention_exp"
  Counts stated, executed;
  std::vector<std::pair<char, Index>> sizes{};
  bool passed() const { return stated == executed; }
};

/// Runs a case on the number type that counts (cost/counted.h), on one thread: forward, backward.
std::vector<CheckedCost> costcheck(const CheckCase& c);

/// A number of operations that is stated wrongly in the same way in all shapes of a setting.
struct CostError {
  std::string operation, setting, pass, count;  ///< count: "mul"; operation: the case that the numbers are of
  Index stated = 0, executed = 0;
  std::string difference;  ///< executed - stated in N, M, d, as "2 H N d"; empty where nothing simple fits
};

/// Returns the errors of these rows, setting by setting, pass by pass, kind by kind, with the numbers of the shape
/// where it differs most.
std::vector<CostError> cost_errors(std::span<const CheckedCost> rows);

}  // namespace heed
