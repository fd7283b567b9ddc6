// Scaling of a mechanism's time and memory with the number of tokens: attention alone, without projections, for one
// image of random values, on one thread.
#pragma once

#include "heed/attention/mechanism.h"

#include <cmath>
#include <optional>
#include <utility>
#include <vector>

namespace heed {

/// Time and memory of a pass.
struct ScalingPass {
  /// Processor times of the pass's runs in seconds, ascending. Other programs affect them only through the caches.
  std::vector<double> times{};

  /// Bytes held at the end of the pass: the tape, the mechanism's saved and scratch memory, its parameters and, in the
  /// backward pass, their gradients.
  Index bytes = 0;

  /// Peak resident memory of the process in the pass, including operands, minus the `resident` of measure_scaling();
  /// none if the system does not report the peak.
  std::optional<Index> resident{};

  /// Returns the quantile of the times for `share`, 0 to 1, interpolated linearly between two runs.
  double quantile(double share) const {
    const double at = share * static_cast<double>(times.size() - 1), below = std::floor(at);
    const auto i = static_cast<std::size_t>(below);
    return at == below ? times[i] : times[i] + (at - below) * (times[i + 1] - times[i]);
  }
};

/// Both passes at one number of tokens: forward as in inference, backward after a recorded forward pass.
struct ScalingSize {
  Index tokens = 0;
  ScalingPass forward{}, backward{};
};

/// Returns the shape of self-attention on `tokens` tokens in a layer of `dim` channels and `heads` heads. The tokens
/// form a grid, as nearly square as possible, without a class token.
AttentionShape scaling_shape(const Mechanism& mechanism, Index dim, Index heads, Index tokens);

/// Returns a lower bound on the bytes that measure_scaling() allocates.
double scaling_bytes(const Mechanism& mechanism, Index dim, Index heads, Index tokens);

/// Runs each pass once to measure memory, then repeatedly, for about `seconds` of processor time and at least three
/// times. Growth of resident memory is relative to `resident`, an earlier value of resident_bytes(); it is correct only
/// if the mechanism has not been measured at a larger size before. Throws Error if the mechanism does not support the
/// shape.
ScalingSize measure_scaling(const Mechanism& mechanism, Index dim, Index heads, Index tokens, double seconds,
                            Index resident);

/// Fits y = a x^b by least squares of logarithms and returns b; none for fewer than two points (x, y).
std::optional<double> fitted_exponent(const std::vector<std::pair<double, double>>& points);

}  // namespace heed
