// Losses for regression and for classification by labels. For targets that are distributions, and for label smoothing,
// see ops/cross_entropy.h.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Computes loss = 1/n sum (y - target)^2 over the n elements, a scalar. y and target have the same shape: there is no
/// broadcasting. dy += 2/n (y - target) dloss, dtarget -= 2/n (y - target) dloss.
template <class T>
Var<T> mean_squared_error(Var<T> y, Var<T> target);

/// Computes loss = -1/B sum over rows b of log softmax(logits[b])[labels[b]], a scalar: logits [B, C], labels in
/// 0..C-1. dlogits += (softmax(logits) - onehot(labels)) dloss / B.
template <class T>
Var<T> cross_entropy(Var<T> logits, std::span<const int> labels);

}  // namespace heed
