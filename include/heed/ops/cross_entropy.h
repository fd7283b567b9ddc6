// Cross entropy of logits and target distributions.
#pragma once

#include "heed/kernels/rows.h"
#include "heed/kernels/softmax.h"
#include "heed/ops/rows.h"

namespace heed {

/// loss = -1 / divisor sum over images b and classes c of t[b,c] log softmax(logits[b])[c], a scalar, with
/// t = (1 - smoothing) targets + smoothing / C (label smoothing: Szegedy et al., arXiv:1512.00567, Section 7).
/// logits [B, C]; targets [B, C], rows that sum to one: one-hot, or mixed by mixup and its kin. They belong to
/// the caller and must outlive the pass. The divisor is the number of images in the whole batch, of which
/// these may be a piece.
///
/// Since the rows of t sum to one, loss[b] = log sum exp(logits[b]) - sum_c t logits, and
///   dlogits = (softmax(logits) - t) dloss / divisor.
template <class T>
Var<T> cross_entropy(Var<T> logits, View<const T> targets, double smoothing, Index divisor) {
  Tape<T>& tape = tape_of("cross_entropy", logits);
  const Shape& shape = logits.shape();
  require(shape.rank() == 2 && shape[1] >= 1 && shape == targets.shape(),
          "[cross_entropy] logits have shape {}, targets {}; expected [B, C] for both", shape, targets.shape());
  require(smoothing >= 0 && smoothing < 1, "[cross_entropy] label smoothing is {}; expected 0 <= smoothing < 1",
          smoothing);
  require(divisor >= 1, "[cross_entropy] the divisor is {}; expected at least 1", divisor);
  const Index images = shape[0], classes = shape[1], n = images * classes;
  const T keep(1 - smoothing), share(smoothing / static_cast<double>(classes)), count(static_cast<double>(divisor));
  Cost cost;
  cost.forward =
      images *
          Counts{.mul = 2 * classes, .add = 4 * classes, .div = classes, .exp = classes, .log = 1, .cmp = classes - 1} +
      Counts{.add = images - 1, .div = 1};
  cost.backward = {.mul = 2 * n, .add = 2 * n, .div = 1};
  T* const probabilities = tape.memory(n);
  T* const kept = tape.memory(2 * images);
  T* const losses = tape.memory(images);
  const T* const target = targets.data();

  return tape.record(
      {"cross_entropy", cost}, Shape{}, {logits},
      [=](T* loss) {
        using std::log;
        std::copy(logits.data(), logits.data() + n, probabilities);
        kernels::softmax_rows(images, classes, classes, probabilities, kept);
        for (Index b = 0; b < images; ++b) {
          losses[b] = kept[2 * b] + log(kept[2 * b + 1]);
          for (Index i = b * classes; i < (b + 1) * classes; ++i)
            losses[b] -= (keep * target[i] + share) * logits.data()[i];
        }
        kernels::column_sums(images, 1, losses, Update::assign, loss);
        *loss = *loss / count;
      },
      [=, &tape](const Adjoint<T>& dloss) {
        const auto dlogits = tape.target(logits);
        if (!dlogits) return;
        const T factor = *dloss.data() / count;
        for (Index i = 0; i < n; ++i)
          write(dlogits.update, dlogits.data[i], factor * (probabilities[i] - (keep * target[i] + share)));
      });
}

}  // namespace heed
