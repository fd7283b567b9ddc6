// Cross entropy of logits and target distributions.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes loss = -1 / divisor sum over images b and classes c of t[b,c] log softmax(logits[b])[c], a scalar, with
/// t = (1 - smoothing) targets + smoothing / C (label smoothing: Szegedy et al., arXiv:1512.00567, Section 7). logits
/// [B, C]; targets [B, C], rows that sum to one: one-hot, or mixed, for example by mixup. Targets belong to the caller
/// and must outlive the pass. The divisor is the number of images in the whole batch; logits may be those of a
/// microbatch.
///
/// Since the rows of t sum to one, loss[b] = log sum exp(logits[b]) - sum_c t logits, and
///   dlogits += (softmax(logits) - t) dloss / divisor.
template <class T>
Var<T> cross_entropy(Var<T> logits, ViewFor<T> targets, double smoothing, Index divisor);

}  // namespace heed
