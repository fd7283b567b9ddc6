// Results of runs as the values of a claim's arms, and training of further seeds.
#pragma once

#include "compared.h"

#include "heed/analysis/claim_rows.h"

namespace heed::cli {

/// Returns the values of the arms: for a finished run its figure, for a diverged run the figure of random predictions.
/// Ignores other runs, and finished runs without the figure.
ClaimArms claim_arms(const std::vector<ComparedArm>& arms, const FigureName& figure);

/// Drops from all named arms each seed that one of them lacks. Arms without values are not considered.
void keep_common_seeds(ClaimArms& arms, std::vector<std::string> names);

/// Trains arms of a sweep with these seeds by run_cells(), in directories beside the arms' other cells. Returns false
/// if interrupted. Throws Error for an arm that is not from a sweep, for changed data or configurations, and
/// for a failed cell.
bool train_seeds(const std::vector<ComparedArm>& arms, const std::vector<Index>& seeds, int jobs, int threads);

}  // namespace heed::cli
