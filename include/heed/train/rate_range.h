// The learning-rate range test: Smith, "Cyclical learning rates for training neural networks", arXiv:1506.01186,
// Section 3.3, with a rate that grows exponentially.
#pragma once

#include "heed/config/experiment.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace heed {

/// Learning rates of a test: step i of `steps`, counted from 0, has the rate from (to / from)^(i / (steps - 1)),
/// with 0 < from < to and steps >= 2.
struct RateRange {
  double from = 1e-7, to = 10;
  Index steps = 200;
};

/// A step: its learning rate, the loss of its batch before the update, and the smoothed loss,
///   m_i = 0.95 m_{i-1} + 0.05 loss_i,   smoothed_i = m_i / (1 - 0.95^{i+1}).
struct RatePoint {
  double lr, loss, smoothed;
};

/// Result of a test: the steps until its end.
struct RateTest {
  std::vector<RatePoint> points;  ///< all finite
  bool diverged = false;  ///< a loss or gradient was not finite, or a smoothed loss exceeded 4 times the minimum
};

/// Trains an experiment at the rates of `range` and stops if the loss diverges. Writes no files.
RateTest test_rates(const Experiment& experiment, const RateRange& range);

/// Learning rate suggested by a test: the lesser of `steepest` and a tenth of `least`. `least` is the rate where the
/// smoothed loss is minimal, `steepest` the rate in the middle of the interval where it falls most per logarithm of the
/// rate. Intervals have a tenth of the test's steps and lie between the first tenth of the test and the minimum.
struct RateAdvice {
  double steepest, least;  ///< rates
  double suggested() const { return std::min(steepest, least / 10); }
};

/// Returns the suggestion; none if the variation between batches could explain the fall of the loss, or if the loss
/// falls in no interval between the first tenth of the test and the minimum.
std::optional<RateAdvice> advice(const std::vector<RatePoint>& points);

}  // namespace heed
