// Settings and metrics of two runs that are compared by heed diff.
#pragma once

#include "heed/train/runs/history.h"

#include <ostream>
#include <string>

namespace heed::cli {

/// Prints the settings and environments that differ, and the first step at which the metrics do. Returns where they
/// part, for a sentence: "the metrics part at step 1; "; empty if they are equal.
std::string compare_runs(std::ostream& out, const RunPaths& a, const RunPaths& b, double tolerance);

}  // namespace heed::cli
