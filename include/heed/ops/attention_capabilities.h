// Capabilities of attention mechanisms (attention/capabilities/) on the tape: maps, decoding, penalty.
#pragma once

#include "heed/attention/capabilities/decoding.h"
#include "heed/attention/capabilities/map.h"
#include "heed/attention/capabilities/penalty.h"
#include "heed/ops/attention.h"

namespace heed {

/// Computes attention() for the token of the pass's DecodingStep, out [1, 1, heads * value width]. Reads and updates
/// the layer's slice of the decoding state, which is sized for shape.longest tokens. Has no gradient. For float and
/// double.
template <class T>
Var<T> attention_step(const Mechanism& mechanism, const AttentionOperands<T>& of, const AttentionLayout& layout,
                      const AttentionShape& shape, std::span<const Var<T>> parameters);

/// Computes the attention map of each head of one image, of shape map_shape(). Requires a mechanism with a map.
template <class T>
void make_map(const Mechanism& mechanism, const AttentionInput<T>& in, T* map);

/// Computes the mechanism's term of the training loss, a scalar, from its parameters for this shape. Requires a
/// mechanism with a penalty. The mechanism must outlive the pass.
template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters);

}  // namespace heed
