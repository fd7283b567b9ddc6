// Prepared tensors: computed from a model's weights alone, once per step rather than once per image or microbatch.
#pragma once

#include "heed/base/parallel.h"
#include "heed/base/parameters.h"
#include "heed/cost/counted.h"

namespace heed {

/// Operands of a preparation. The backward pass reads the gradients of the prepared tensors and accumulates into those
/// of the original weights.
template <class T>
struct PreparationPass {
  Parameters<T>* parameters;
  Gradients<T>* gradients = nullptr;  ///< null in the forward pass
  bool training = false;
  RandomStream random{};  ///< random stream of the step
};

/// Computation of prepared tensors, forward and backward.
class Preparation {
 public:
  virtual ~Preparation() = default;
  virtual void forward(const OfNumber<PreparationPass>& pass) const = 0;
  virtual void backward(const OfNumber<PreparationPass>& pass) const = 0;
};

/// Computes all prepared tensors from the current weights.
template <class T>
void prepare(const PreparationPass<T>& pass) {
  const auto& all = pass.parameters->list().preparations();
  parallel_for(static_cast<Index>(all.size()), [&](Index i) { all[static_cast<std::size_t>(i)]->forward(pass); });
}

/// Propagates the gradients of the prepared tensors, summed over the batch, to the weights that they depend on.
template <class T>
void prepare_backward(const PreparationPass<T>& pass) {
  const auto& all = pass.parameters->list().preparations();
  parallel_for(static_cast<Index>(all.size()), [&](Index i) { all[static_cast<std::size_t>(i)]->backward(pass); });
}

}  // namespace heed
