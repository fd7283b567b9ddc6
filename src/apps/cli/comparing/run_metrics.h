// Settings and metrics of two runs, compared by heed diff.
#pragma once

#include "heed/train/runs/history.h"

#include <ostream>
#include <string>

namespace heed::cli {

/// Prints the differing settings and environments, and the first step at which the metrics differ. Returns a clause
/// about the difference, such as "the metrics differ from step 1 on; ". Empty if the metrics are equal and end at the
/// same step.
std::string compare_runs(std::ostream& out, const RunPaths& a, const RunPaths& b, double tolerance);

}  // namespace heed::cli
