#include "heed/ops/elementary/losses.h"

#include "heed/cost/for_each_number.h"
#include "heed/ops/elementary/arithmetic.h"
#include "heed/ops/elementary/reductions.h"
#include "heed/ops/sequences.h"

namespace heed {

template <class T>
Var<T> mean_squared_error(Var<T> y, Var<T> target) {
  require(y.shape() == target.shape(), "[mean_squared_error] y has shape {}, the target {}; they must match", y.shape(),
          target.shape());
  const Var<T> error = y - target;
  return mean(error * error);
}

template <class T>
Var<T> cross_entropy(Var<T> logits, std::span<const int> labels) {
  const Shape& shape = logits.shape();
  require(shape.rank() == 2 && shape[0] == static_cast<Index>(labels.size()) && shape[0] > 0,
          "[cross_entropy] logits have shape {}, {} labels are given; expected [B, C] and B labels", shape,
          labels.size());
  for (const int label : labels)
    require(label >= 0 && label < shape[1], "[cross_entropy] label {}; expected 0 to {}", label, shape[1] - 1);
  const std::span<int> kept = logits.tape().template list<int>(labels.size());
  std::copy(labels.begin(), labels.end(), kept.begin());
  return label_cross_entropy(logits, kept.data(), shape[0]);
}

#define INSTANTIATE(T)                                \
  template Var<T> mean_squared_error(Var<T>, Var<T>); \
  template Var<T> cross_entropy(Var<T>, std::span<const int>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
