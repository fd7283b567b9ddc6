// The parts of a report: runs and models as JSON, and the page that shows them.
#pragma once

#include "src/apps/cli/comparing/compared.h"

namespace heed::cli {

/// {"arms", "figure_names", "settings", "curves", "runs"}: see the functions in report_runs.cpp. Numbers that are not
/// finite are null. Throws Error for a file of a run that is none of heed train's.
Json runs_json(const std::vector<ComparedArm>& arms);

/// {"contractions", "all"}: the run's cost.json, its layers with the number of their block, -1 where they are in none.
/// Null where the run has no cost.json.
Json cost_of_run(const RunPaths& paths);

/// Takes the test images of the run through its model: {"images", "accuracy", "loss", "classes", "confusion",
/// "mistakes", "maps"}; see the functions in report_model.cpp. Returns {"obstacle"} if weights or images
/// are missing, or the model's answers are no classes or not finite.
Json model_json(const std::string& run);

/// A file in HTML that shows `report` in a browser and needs nothing else: style, program, data and images are in it.
/// Throws Error, naming the key, for a number that is not finite.
std::string report_page(const std::string& title, const Json& report);

}  // namespace heed::cli
