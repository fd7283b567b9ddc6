// Tensors that a model makes of its weights alone, once per step and not for each image or piece of a batch.
#pragma once

#include "heed/base/parallel.h"
#include "heed/base/parameters.h"
#include "heed/cost/counted.h"

namespace heed {

/// What a preparation works on. The gradients are there on the way back: those of the prepared tensors are read, and
/// what follows from them is added to those of the tensors they were made of.
template <class T>
struct PreparationPass {
  Parameters<T>* parameters;
  Gradients<T>* gradients = nullptr;
  bool training = false;
  RandomStream random{};  ///< the step's
};

/// Makes prepared tensors, and takes their gradients back.
class Preparation {
 public:
  virtual ~Preparation() = default;
  virtual void forward(const OfNumber<PreparationPass>& pass) const = 0;
  virtual void backward(const OfNumber<PreparationPass>& pass) const = 0;
};

/// Brings all prepared tensors of the parameters up to date.
template <class T>
void prepare(const PreparationPass<T>& pass) {
  const auto& all = pass.parameters->list().preparations();
  parallel_for(static_cast<Index>(all.size()), [&](Index i) { all[static_cast<std::size_t>(i)]->forward(pass); });
}

/// Hands the gradients of the prepared tensors, summed over the batch, on to the tensors they were made of.
template <class T>
void prepare_backward(const PreparationPass<T>& pass) {
  const auto& all = pass.parameters->list().preparations();
  parallel_for(static_cast<Index>(all.size()), [&](Index i) { all[static_cast<std::size_t>(i)]->backward(pass); });
}

}  // namespace heed
