// Layer norm of the queries and keys of each head, in place between a qkv projection and attention.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/tape/tape.h"

namespace heed {

/// x [..., layout.total()], each row q of `layout.heads` parts, then k, then v of `layout.key_heads`: each part of q
/// becomes gamma (x - mean) / sqrt(variance + eps) + beta with q's gamma and beta [query width], which all heads share,
/// k with its own, and v stays. Saved: mean and 1 / sqrt(variance + eps) of each part.
///
///   dgamma += sum over rows and heads of dy xn,  dbeta likewise of dy,  dx: see kernels/layer_norm.h;  dv += dv
template <class T>
Var<T> head_norm(Var<T> x, const AttentionLayout& layout, Var<T> q_gamma, Var<T> q_beta, Var<T> k_gamma, Var<T> k_beta,
                 double eps = 1e-6);

}  // namespace heed
