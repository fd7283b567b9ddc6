// Layer norm of the queries and keys of each head, in place between a qkv projection and attention.
#pragma once

#include "heed/attention/mechanism.h"
#include "heed/ops/layer_norm_parts.h"

namespace heed {

/// x [..., layout.total()], each row q of `layout.heads` parts, then k, then v of `layout.key_heads`: each part of q
/// becomes gamma (x - mean) / sqrt(variance + eps) + beta with the gamma and beta of `q` [query width], which all
/// heads share, k with those of `k`, and v stays; without gamma and beta of `k` there is no k in x. Saved: mean and 1 /
/// sqrt(variance + eps) of each part.
///
///   dgamma += sum over rows and heads of dy xn,  dbeta likewise of dy,  dx: see kernels/rows/layer_norm.h;  dv += dv
template <class T>
Var<T> head_norm(Var<T> x, const AttentionLayout& layout, const std::type_identity_t<NormPart<T>>& q,
                 const std::type_identity_t<NormPart<T>>& k = {}, double eps = 1e-6);

}  // namespace heed
