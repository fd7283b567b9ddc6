// Layer norm of the queries and keys of each head, between a qkv projection and attention.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/ops/layer_norm_parts.h"

namespace heed {

/// Normalises each head's slice of q and k: gamma (x - mean) / sqrt(variance + eps) + beta, with the gamma and beta
/// [query width] of `q` for all heads of q, and those [key width] of `k` for all heads of k; v is copied. Each row of x
/// [..., layout.total()] is q of `layout.heads` heads, then k, then v of `layout.key_heads` heads. If `k` has no gamma
/// and beta, the rows must have no k. Saved: mean and 1 / sqrt(variance + eps) of each slice.
///
///   dgamma += sum over rows and heads of dy xn,  dbeta += sum over rows and heads of dy
///   dx: for q and k, see kernels/rows/layer_norm.h;  for v, dx += dy
template <class T>
Var<T> head_norm(Var<T> x, const AttentionLayout& layout, const std::type_identity_t<NormPart<T>>& q,
                 const std::type_identity_t<NormPart<T>>& k = {}, double eps = 1e-6);

}  // namespace heed
