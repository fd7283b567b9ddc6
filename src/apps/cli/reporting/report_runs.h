// Run directories as JSON for a report: figures, curves, configuration, environment.
#pragma once

#include "src/apps/cli/comparing/compared.h"

namespace heed::cli {

/// {"arms", "figure_names", "settings", "curves", "runs"}: see the functions in report_runs.cpp. Numbers that are not
/// finite are null. Throws Error for a file of a run that is none of heed train's.
Json runs_json(const std::vector<ComparedArm>& arms);

/// {"contractions", "all"}: the run's cost.json, its layers with the number of their block, -1 where they are in none.
/// Null where the run has no cost.json.
Json cost_of_run(const RunPaths& paths);

}  // namespace heed::cli
