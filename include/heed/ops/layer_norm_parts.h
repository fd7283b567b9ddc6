// Layer normalisation of parts of rows, each by itself: the queries, keys and values in the output of one projection.
#pragma once

#include "heed/tape/tape.h"

#include <span>

namespace heed {

/// Consecutive channels that are normalised together: as many as gamma and beta have.
template <class T>
struct NormPart {
  Var<T> gamma, beta;
};

/// y = norm(x) + r: layer norm of the first gamma_0.size() channels of each row of x [..., n], of the gamma_1.size()
/// after them, and so on; the parts, at most three, make up the whole row. residual r [..., n] or left out. As
/// layer_norm (ops/layer_norm.h), part by part; dr += dy.
template <class T>
Var<T> layer_norm_parts(Var<T> x, std::span<const NormPart<T>> list, Var<T> residual = {}, double eps = 1e-6);

}  // namespace heed
