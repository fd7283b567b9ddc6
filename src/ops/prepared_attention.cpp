#include "heed/ops/prepared_attention.h"

#include "mechanism_parameters.h"

#include "heed/base/math.h"
#include "heed/cost/for_each_number.h"

namespace heed {

template <class T>
Var<T> prepare(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters,
               ViewFor<T> noise) {
  const PreparationCapability* const m = mechanism.preparation();
  Tape<T>& tape = parameters[0].tape();
  const auto handles = copied_handles(tape, parameters);
  const auto values = values_of(tape, handles);
  const bool training = tape.draws();
  const auto arguments = [=](T* prepared) {
    return AttentionPreparation<T>{shape, values, training, noise, {prepared}};
  };
  return tape.record(
      {mechanism.name(), m->preparation_cost(shape)}, Shape{mechanism.memory(shape).prepared}, handles,
      [=](T* prepared) { m->prepare(arguments(prepared)); },
      [=, &tape](const Adjoint<T>& dprepared) {
        m->prepare_backward(AttentionPreparationBackward<T>{arguments(const_cast<T*>(dprepared.value())),
                                                            {const_cast<T*>(dprepared.data())},
                                                            gradients_to_add_to(tape, handles)});
      });
}

PreparedAttention::PreparedAttention(ParameterList& list, const std::string& layer,
                                     std::shared_ptr<const Mechanism> mechanism, const AttentionShape& shape,
                                     std::vector<ParameterId> parameters)
    : layer_(layer), mechanism_(std::move(mechanism)), shape_(shape), parameters_(std::move(parameters)) {
  prepared_ = list.add({.name = layer + ".prepared",
                        .shape = {mechanism_->memory(shape).prepared},
                        .initial = Initial::constant(0),
                        .decay = false,
                        .trainable = false,
                        .prepared = true});
}

template <class T>
Var<T> PreparedAttention::on(Tape<T>& tape, std::span<const Var<T>> parameters) const {
  if (tape.pass().prepared) return tape.parameter(prepared_);
  const Shape shape = tape.draws() ? mechanism_->preparation()->noise(shape_) : Shape{0};
  T* const noise = tape.memory(shape.elements());
  if (noise) draw_noise(tape.pass().random, shape.elements(), noise);
  return prepare<T>(*mechanism_, shape_, parameters, {noise, shape});
}

void PreparedAttention::forward(const OfNumber<PreparationPass>& any) const {
  std::visit(
      [this](const auto& pass) {
        with_arguments(pass, [&](const auto& of) { mechanism_->preparation()->prepare(of); });
      },
      any);
}

void PreparedAttention::backward(const OfNumber<PreparationPass>& any) const {
  std::visit(
      [this]<class T>(const PreparationPass<T>& pass) {
        std::vector<View<T>> gradients;
        for (const ParameterId id : parameters_) gradients.push_back((*pass.gradients)[id]);
        with_arguments(pass, [&](const AttentionPreparation<T>& of) {
          mechanism_->preparation()->prepare_backward(
              AttentionPreparationBackward<T>{of, {(*pass.gradients)[prepared_].data()}, gradients});
        });
      },
      any);
}

/// Draws standard Gumbel noise, -log(-log(u)), the same for all microbatches of a step.
template <class T>
void PreparedAttention::draw_noise(const RandomStream& step, Index count, T* noise) const {
  const RandomStream stream = step.derive("gumbel").derive(layer_);
  for (Index i = 0; i < count; ++i)
    noise[i] = T(-math::log(-math::log(1 - stream.uniform(i))));  // infinite if uniform() is 0: probability 2^-53
}

/// Calls f with the arguments of a step's preparation.
template <class T, class F>
void PreparedAttention::with_arguments(const PreparationPass<T>& pass, const F& f) const {
  std::vector<View<const T>> values;
  for (const ParameterId id : parameters_) values.push_back(std::as_const(*pass.parameters)[id]);
  const Shape shape = pass.training ? mechanism_->preparation()->noise(shape_) : Shape{0};
  std::vector<T> noise(static_cast<std::size_t>(shape.elements()));
  draw_noise(pass.random, shape.elements(), noise.data());
  f(AttentionPreparation<T>{
      shape_, values, pass.training, {noise.data(), shape}, {(*pass.parameters)[prepared_].data()}});
}

#define INSTANTIATE(T)                                                                                      \
  template Var<T> prepare(const Mechanism&, const AttentionShape&, std::span<const Var<T>>, View<const T>); \
  template Var<T> PreparedAttention::on(Tape<T>&, std::span<const Var<T>>) const;
HEED_FOR_EACH_NUMBER(INSTANTIATE)
#undef INSTANTIATE

}  // namespace heed
