// Parts of a report: runs and models as JSON, and the page that displays them.
#pragma once

#include "src/apps/cli/comparing/compared.h"

namespace heed::cli {

/// Returns {"arms", "figure_names", "settings", "styles", "curves", "runs"}: see the functions in report_runs.cpp.
/// Non-finite numbers are null. Throws Error for a run's file that heed train cannot have written.
Json runs_json(const std::vector<ComparedArm>& arms);

/// Returns {"contractions", "all"}: the run's cost.json, in which each layer also has the index of its block, or -1
/// outside of blocks. Null if the run has no cost.json.
Json cost_of_run(const RunPaths& paths);

/// Runs the test images through the run's model and returns {"images", "accuracy", "loss", "classes", "confusion",
/// "mistakes", "maps"}; see the functions in report_model.cpp. Returns {"obstacle"} if weights or images are missing,
/// or if the model's outputs are not classes or not finite.
Json model_json(const std::string& run);

/// Returns a self-contained HTML file that displays `report`, with style, program, data and images. Throws Error,
/// naming the key, for a non-finite number.
std::string report_page(const std::string& title, const Json& report);

}  // namespace heed::cli
