// Comparison of a hand-written mechanism with its composed form.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/checks/gradcheck.h"

namespace heed {

/// Maximum relative error. Both forms compute the same expressions in double, in different orders.
inline constexpr double composition_tolerance = 1e-10;

/// Returns true if the mechanism is hand-written and has a composed form for comparison.
bool has_composition(const Mechanism& mechanism);

/// Returns true if the mechanism is composed; its cost is then the sum of its operations' costs.
bool is_composed(const Mechanism& mechanism);

/// Runs both forms on one image with random operands. Returns rows for the output, the gradients of q, k, v and
/// mechanism parameters, and the steps reported by run_forward() and run_backward() (attention/steps.h). Throws Error
/// for a step that the composed form does not have, and for mechanisms that prepare tensors or use noise.
std::vector<CheckRow> compare_with_composition(const std::string& label, const Mechanism& mechanism,
                                               const AttentionShape& shape, std::uint64_t seed);

}  // namespace heed
