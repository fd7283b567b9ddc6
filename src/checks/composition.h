// Comparison of a hand-written mechanism with its composed form.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/checks/gradcheck.h"

namespace heed {

/// Largest relative error that passes. Both forms compute the same expressions in double, in another order.
inline constexpr double composition_tolerance = 1e-10;

/// Returns whether the mechanism is written by hand and has a composed form to compare it with.
bool has_composition(const Mechanism& mechanism);

/// Returns whether the mechanism is its composed form, whose cost is that of its operations.
bool is_composed(const Mechanism& mechanism);

/// Runs both forms on one image with random operands: rows for the output, the gradients of q, k, v and the mechanism's
/// parameters, and the steps that run_forward() and run_backward() report (attention/steps.h). Throws Error for a step
/// that the composed form does not name, and for mechanisms that prepare tensors or use noise.
std::vector<CheckRow> compare_with_composition(const std::string& label, const Mechanism& mechanism,
                                               const AttentionShape& shape, std::uint64_t seed);

}  // namespace heed
