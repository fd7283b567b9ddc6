// Dropout and stochastic depth: random in training, the identity in evaluation.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = x m / (1 - rate); each element of m is 0 with probability `rate`, otherwise 1. `place` identifies the
/// layer: layers draw from separate random streams. Srivastava et al., "Dropout", JMLR 15, 2014.
template <class T>
Var<T> dropout(Var<T> x, double rate, std::uint64_t place);

/// Computes dropout with one m per image of x [B, ...] or, in a pass with segments, per sequence: m = 0 drops a
/// residual branch for the whole image or sequence. Huang et al., "Deep networks with stochastic depth",
/// arXiv:1603.09382.
template <class T>
Var<T> stochastic_depth(Var<T> x, double rate, std::uint64_t place);

}  // namespace heed
