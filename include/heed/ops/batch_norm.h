// Batch normalisation. Ioffe, Szegedy, "Batch normalization", arXiv:1502.03167, Algorithm 1.
#pragma once

#include "heed/tape/tape.h"

namespace heed {

/// Options of batch_norm(): weight of the new statistics in the running ones, and eps.
struct BatchNormOptions {
  double momentum = 0.1, eps = 1e-5;
  /// Consecutive images normalised together ("ghost batch norm"), a divisor of the batch size; 0: all.
  Index group = 0;
};

/// Computes y = gamma (x - mean) / sqrt(variance + eps) + beta per channel: x [B, ..., C], B > 0, gamma, beta [C]. In
/// training, mean and variance (divisor n) are taken over the group, and the running statistics [C] are updated group
/// by group: running = (1 - momentum) running + momentum statistic, the variance with divisor n - 1. In evaluation the
/// running statistics are used. A pass over a microbatch uses the statistics of the whole batch if the pass has
/// examples.batch ("synchronised batch norm", PyTorch's SyncBatchNorm), otherwise those of the microbatch.
///
/// In training, with xn = (x - mean) scale, g = gamma dy and means over the group:
///   dx += scale (g - mean(g) - xn mean(g xn)); in evaluation, dx += scale g.
///   dgamma += sum dy xn,  dbeta += sum dy.
template <class T>
Var<T> batch_norm(Var<T> x, Var<T> gamma, Var<T> beta, View<T> running_mean, View<T> running_variance,
                  const BatchNormOptions& options = {});

/// Returns the number of values per channel that batch_norm() normalises together in x [B, ..., C].
template <class T>
Index values_together(const Tape<T>& tape, const Shape& x, const BatchNormOptions& options);

}  // namespace heed
