// The runs of a sweep as the measurements of a claim, and further seeds of them.
#pragma once

#include "compared.h"

#include "heed/analysis/claim_rows.h"

namespace heed::cli {

/// Keys of the figures that a claim may be about: accuracies and losses.
std::vector<std::string> claim_figures();
const FigureName& claim_figure(const std::string& key);

/// Returns the figure's value of each finished run, and chance for each run that diverged. Adds a line to `notes` for
/// each other run.
ClaimArms claim_arms(const std::vector<ComparedArm>& arms, const FigureName& figure, std::string& notes);

/// Removes seeds that one of the named arms has and another has not; adds a line to `notes` for each.
void keep_common_seeds(ClaimArms& arms, const std::vector<std::string>& names, std::string& notes);

/// Trains these seeds of arms that a sweep made, beside their other cells; run_cells() says how. Returns false if
/// interrupted. Throws Error for an arm that is not a sweep's, or a cell that failed.
bool train_seeds(const std::vector<ComparedArm>& arms, const std::vector<Index>& seeds, int jobs, int threads);

}  // namespace heed::cli
