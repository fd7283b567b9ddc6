// Growth of a mechanism's time and memory with the number of tokens: attention alone, without projections, on one
// image, one thread and random numbers.
#pragma once

#include "heed/attention/mechanism.h"

#include <optional>
#include <utility>
#include <vector>

namespace heed {

/// Time and memory of a pass.
struct ScalingPass {
  /// Processor time of its runs in seconds, ascending. The time of other programs is not in it, but they share the
  /// caches.
  std::vector<double> times{};

  /// Memory held at its end: by the tape, by the mechanism's scratch memory and its own tensors and, backward, by their
  /// gradients.
  Index bytes = 0;

  /// Growth of the peak of the process's resident memory since the start, operands included; none if the system does
  /// not report it.
  std::optional<Index> resident{};

  /// The time that a share of the runs, 0 to 1, did not exceed.
  double quantile(double share) const {
    return times[static_cast<std::size_t>(share * static_cast<double>(times.size() - 1))];
  }
};

/// Both passes at one number of tokens: forward as in inference, backward after a forward pass that recorded.
struct ScalingSize {
  Index tokens = 0;
  ScalingPass forward{}, backward{};
};

/// Self-attention of a mechanism on `tokens` tokens in a layer of `dim` channels and `heads` heads. The tokens form a
/// grid, as nearly square as their number allows, without a class token.
AttentionShape scaling_shape(const Mechanism& mechanism, Index dim, Index heads, Index tokens);

/// Bytes that measure_scaling() takes at least.
double scaling_bytes(const Mechanism& mechanism, Index dim, Index heads, Index tokens);

/// Runs each pass once for its memory, then for about `seconds` of processor time and at least three times.
/// `resident` is where growth of resident memory is counted from, resident_bytes() at some time before. Memory is
/// right if the mechanism was measured at no larger size before. Throws Error if it cannot work on the shape.
ScalingSize measure_scaling(const Mechanism& mechanism, Index dim, Index heads, Index tokens, double seconds,
                            Index resident);

/// b in y = a x^b by least squares of logarithms; nothing from fewer than two points (x, y).
std::optional<double> fitted_exponent(const std::vector<std::pair<double, double>>& points);

}  // namespace heed
