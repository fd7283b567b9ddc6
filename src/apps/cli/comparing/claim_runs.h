// Results of a sweep's runs for claims, and training of further seeds.
#pragma once

#include "compared.h"

#include "heed/analysis/claim_rows.h"

namespace heed::cli {

/// Return the keys of the figures that claims may refer to (accuracies and losses), and the figure of a key.
std::vector<std::string> claim_figures();
const FigureName& claim_figure(const std::string& key);

/// Returns the figure of each finished run, and the random-prediction figure of each diverged run. Adds a line to
/// `notes` for each other run.
ClaimArms claim_arms(const std::vector<ComparedArm>& arms, const FigureName& figure, std::string& notes);

/// Removes seeds that are not in all named arms; adds a line to `notes` for each.
void keep_common_seeds(ClaimArms& arms, const std::vector<std::string>& names, std::string& notes);

/// Trains these seeds of a sweep's arms in directories beside their other cells, with run_cells(). Returns false if
/// interrupted. Throws Error for an arm that is not a sweep's, or a cell that failed.
bool train_seeds(const std::vector<ComparedArm>& arms, const std::vector<Index>& seeds, int jobs, int threads);

}  // namespace heed::cli
