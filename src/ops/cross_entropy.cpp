#include "heed/ops/cross_entropy.h"

#include "heed/base/math.h"
#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

template <class T>
Var<T> cross_entropy(Var<T> logits, ViewFor<T> targets, double smoothing, Index divisor) {
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
  cost.forward = kernels::softmax_counts(images, n) + images * Counts{.add = 1, .log = 1} +
                 n * Counts{.mul = 2, .add = 2} + kernels::column_sums_counts(images, 1) + Counts{.div = 1};
  cost.backward = {.mul = 2 * n, .add = 2 * n, .div = 1};
  const Matrix<T> probabilities(tape.memory(n), images, classes), kept(tape.memory(2 * images), images, 2);
  T* const losses = tape.memory(images);
  const Matrix<const T> target(targets.data(), images, classes);

  return tape.record(
      {"cross_entropy", cost}, Shape{}, {logits},
      [=](T* loss) {
        using math::log;
        const Matrix<const T> x = logits.matrix();
        std::copy(x.data, x.data + n, probabilities.data);
        kernels::softmax_rows(probabilities, kept);
        for (Index b = 0; b < images; ++b) {
          losses[b] = kept(b, 0) + log(kept(b, 1));
          for (Index c = 0; c < classes; ++c) losses[b] -= (keep * target(b, c) + share) * x(b, c);
        }
        kernels::column_sums(Matrix<const T>(losses, images, 1), Update::assign, loss);
        *loss = *loss / count;
      },
      [=, &tape](const Adjoint<T>& dloss) {
        const auto dlogits = tape.target(logits);
        if (!dlogits) return;
        const T factor = *dloss.data() / count;
        for (Index i = 0; i < n; ++i)
          write(dlogits.update, dlogits.data[i], factor * (probabilities.data[i] - (keep * target.data[i] + share)));
      });
}

#define INSTANTIATE(T) template Var<T> cross_entropy(Var<T>, View<const T>, double, Index);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
