#include "heed/ops/attention_capabilities.h"

#include "mechanism_parameters.h"

#include "heed/ops/rows.h"
#include "heed/cost/for_each_number.h"

namespace heed {

template <class T>
Var<T> attention_step(const Mechanism& mechanism, const AttentionOperands<T>& of, const AttentionLayout& layout,
                      const AttentionShape& shape, std::span<const Var<T>> parameters) {
  const Index width = layout.heads * layout.value_width;
  Tape<T>& tape = of.tape();
  DecodingStep<T>* const step = tape.pass().examples.decoding;
  require(step && of.images() == 1 && of.queries() == 1,
          "[{}] decoding {} tokens of {} images; expected one token of one image", mechanism.name(), of.queries(),
          of.images());
  if constexpr (std::is_same_v<T, Counted>) {
    fail("[{}] operations of decoding cannot be counted", mechanism.name());
  } else {
    AttentionDecoding<T> call;
    call.in.shape = layout.among(1, shape);
    call.in.shape.whole = false;
    call.in.q = of.heads(0, 0), call.in.k = of.heads(1, 0), call.in.v = of.heads(2, 0);
    call.in.parameters = values_of(tape, parameters);
    call.position = step->position;
    call.state = step->state, call.sums = step->sums;
    const DecodingCapability* const decoding = mechanism.decoding();
    require(decoding != nullptr, "[{}] has no causal form", mechanism.name());
    const AttentionStateSize size = decoding->state_size(call.in.shape, shape.longest);
    step->state += size.state, step->sums += size.sums;
    call.scratch = thread_memory<T>(size.scratch);
    return tape.record(
        {mechanism.name(), {}}, Shape{1, 1, width}, {of.qkv[2]},
        [&](T* y) {
          call.out = {{y, 1, layout.value_width}, layout.heads, layout.value_width};
          decoding->decode(call);
        },
        [](const Adjoint<T>&) {});
  }
}

template <class T>
void make_map(const Mechanism& mechanism, const AttentionInput<T>& in, T* map) {
  const Shape shape = map_shape(mechanism, in.shape);
  const AttentionMemorySize size = mechanism.memory(in.shape);
  Buffer<T> saved(size.saved), scratch(size.scratch);
  mechanism.maps()->map(AttentionMap<T>{
      in, {{map, shape[1], shape[2]}, shape[0], shape[1] * shape[2]}, {saved.data()}, {scratch.data()}});
}

template <class T>
Var<T> penalty(const Mechanism& mechanism, const AttentionShape& shape, std::span<const Var<T>> parameters) {
  const PenaltyCapability* const m = mechanism.penalty_term();
  HEED_ASSERT(m != nullptr && !parameters.empty());
  Tape<T>& tape = parameters[0].tape();
  const auto handles = copied_handles(tape, parameters);
  const auto values = values_of(tape, handles);
  return tape.record(
      {"penalty", m->penalty_cost(shape)}, Shape{}, handles,
      [=](T* y) {
        m->penalty(AttentionPenalty<T>{shape, values, T(1), {}, y});
      },
      [=, &tape](const Adjoint<T>& dy) {
        T unused;
        m->penalty(AttentionPenalty<T>{shape, values, *dy.data(), gradients_to_add_to(tape, handles), &unused});
      });
}

#define INSTANTIATE(T)                                                                                  \
  template Var<T> attention_step(const Mechanism&, const AttentionOperands<T>&, const AttentionLayout&, \
                                 const AttentionShape&, std::span<const Var<T>>);                       \
  template void make_map(const Mechanism&, const AttentionInput<T>&, T*);                               \
  template Var<T> penalty(const Mechanism&, const AttentionShape&, std::span<const Var<T>>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)
#undef INSTANTIATE

}  // namespace heed
