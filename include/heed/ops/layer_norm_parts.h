// Layer normalisation of parts of rows: the queries, keys and values in the output of one projection.
#pragma once

#include "heed/tape/tape.h"

#include <span>

namespace heed {

/// Gamma and beta of consecutive channels normalised together.
template <class T>
struct NormPart {
  Var<T> gamma, beta;
};

/// Computes y = norm(x) + r with a layer norm (ops/layer_norm.h) of each part of a row of x [..., n]: of the first
/// gamma_0.size() channels, of the next gamma_1.size(), and so on. There are at most three parts; their sizes add up to
/// n. Residual r [..., n] optional; dr += dy.
template <class T>
Var<T> layer_norm_parts(Var<T> x, std::span<const NormPart<T>> list, Var<T> residual = {}, double eps = 1e-6);

}  // namespace heed
