// softmax over the last axis.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes y = exp(x - max) / sum exp(x - max) over the last axis.
///
///   dx += y (dy - sum y dy)
template <class T>
Var<T> softmax(Var<T> x);

}  // namespace heed
