// Batch normalisation. Ioffe, Szegedy, "Batch normalization", arXiv:1502.03167, Algorithm 1.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

struct BatchNormOptions {
  double momentum = 0.1, eps = 1e-5;
  /// Consecutive images that are normalised together ("ghost batch norm"), dividing the batch; 0: all.
  Index group = 0;
};

/// y = gamma (x - mean) / sqrt(variance + eps) + beta per channel: x [B, ..., C], B > 0, gamma, beta [C]. In training
/// mean and variance (divisor n) are those of the group, and the running ones [C] move towards them, group after group:
/// running = (1 - momentum) running + momentum statistic, the variance with divisor n - 1. In evaluation the running
/// ones are used. A pass over a piece of a batch has the statistics of the whole batch where it has Pass::whole
/// ("synchronised batch norm", PyTorch's SyncBatchNorm), and those of the piece otherwise.
///
/// Training, with xn = (x - mean) scale, g = gamma dy, means over the group:
///   dx = scale (g - mean(g) - xn mean(g xn)); evaluation: dx = scale g.
///   dgamma = sum dy xn,  dbeta = sum dy.
template <class T>
Var<T> batch_norm(Var<T> x, Var<T> gamma, Var<T> beta, View<T> running_mean, View<T> running_variance,
                  const BatchNormOptions& options = {});

/// How many values of a channel batch_norm() takes together in x [B, ..., C].
template <class T>
Index values_together(const Tape<T>& tape, const Shape& x, const BatchNormOptions& options);

}  // namespace heed
