// Results of a sweep's runs for claims, and training of further seeds.
#pragma once

#include "compared.h"

#include "heed/analysis/claim_rows.h"

namespace heed::cli {

/// Returns the keys of the figures that claims may refer to: accuracies and losses.
std::vector<std::string> claim_figures();
/// Returns the figure with one of these keys.
const FigureName& claim_figure(const std::string& key);

/// Returns the figure of each finished run and, for each diverged run, the figure of random predictions. Adds a line to
/// `notes` for each other run.
ClaimArms claim_arms(const std::vector<ComparedArm>& arms, const FigureName& figure, std::string& notes);

/// Removes seeds that are not in all named arms; adds a line to `notes` for each.
void keep_common_seeds(ClaimArms& arms, const std::vector<std::string>& names, std::string& notes);

/// Trains arms of a sweep with these seeds, in directories beside their other cells, by run_cells(). Returns false if
/// interrupted. Throws Error for an arm that is not from a sweep, and for a failed cell.
bool train_seeds(const std::vector<ComparedArm>& arms, const std::vector<Index>& seeds, int jobs, int threads);

}  // namespace heed::cli
