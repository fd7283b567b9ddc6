#include "heed/train/inference.h"

#include "heed/tape/preparation.h"

namespace heed {

template <class T>
Inference<T>::Inference(const Model& model, Parameters<T>& parameters, Index microbatch, Statistics statistics)
    : model_(model), parameters_(parameters), microbatch_(microbatch), statistics_(statistics) {
  renew();
}

template <class T>
void Inference<T>::renew() {
  packed_.pack(Products::exact, parameters_, false);
  prepare(PreparationPass<T>{&parameters_});
}

template <class T>
Tape<T>& Inference<T>::begin(Index tape) const {
  return tapes_.begin({.parameters = &parameters_,
                       .packed = &packed_,
                       .prepared = true,
                       .training = statistics_ == Statistics::of_pass,
                       .execution = {.recompute = statistics_ == Statistics::running, .deterministic = true}},
                      tape);
}

template <class T>
void Inference<T>::run(const ModelInput<T>& examples, T* logits) const {
  for_microbatches({0, examples.count()}, [&](Tape<T>& tape, ExampleRange microbatch) {
    const Var<T> result = model_.logits(tape, examples.part(microbatch.first, microbatch.count));
    std::copy(result.data(), result.data() + result.size(),
              logits + microbatch.first * (result.size() / microbatch.count));
  });
}

template class Inference<float>;
template class Inference<double>;

}  // namespace heed
