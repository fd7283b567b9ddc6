// Results of a sweep's runs for claims, and training of further seeds.
#pragma once

#include "compared.h"

#include "heed/analysis/claim_rows.h"

namespace heed::cli {

/// Returns the keys of the figures that claims may refer to: accuracies and losses.
std::vector<std::string> claim_figures();
/// Returns the figure with one of these keys.
const FigureName& claim_figure(const std::string& key);

/// Returns the figure of each finished run and, for each diverged run, the figure of random predictions. Other runs are
/// ignored.
ClaimArms claim_arms(const std::vector<ComparedArm>& arms, const FigureName& figure);

/// Ignores seeds that are not in all of the named arms that have any.
void keep_common_seeds(ClaimArms& arms, std::vector<std::string> names);

/// Trains arms of a sweep with these seeds, in directories beside their other cells, by run_cells(). Returns false if
/// interrupted. Throws Error for an arm that is not from a sweep, and for a failed cell.
bool train_seeds(const std::vector<ComparedArm>& arms, const std::vector<Index>& seeds, int jobs, int threads);

}  // namespace heed::cli
