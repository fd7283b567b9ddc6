// Sums, means and maxima over axes.
//
// `axes` are the axes to reduce; negative ones count from the last, {} stands for all. The result lacks these axes, or
// with `keep_axes` has size 1 there, so that it can be broadcast against x: x / sum(x, {-1}, true).
#pragma once

#include "heed/ops/elementary/axes.h"
#include "heed/tape/tape.h"

namespace heed {

/// Computes y = sum x over axes. dx += dy, repeated along them.
template <class T>
Var<T> sum(Var<T> x, const Axes& axes = {}, bool keep_axes = false);

/// Computes y = 1/n sum x over axes of n elements. dx += dy / n. Throws Error for n = 0.
template <class T>
Var<T> mean(Var<T> x, const Axes& axes = {}, bool keep_axes = false);

/// Computes y = max x over axes. dx += dy / c at the c elements that equal the maximum. Throws Error if there are no
/// elements.
template <class T>
Var<T> max(Var<T> x, const Axes& axes = {}, bool keep_axes = false);

}  // namespace heed
