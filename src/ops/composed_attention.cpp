#include "heed/ops/composed_attention.h"

#include "heed/attention/steps.h"
#include "heed/cost/for_each_number.h"

#include <cmath>

namespace heed {

namespace {

const CompositionCapability& form_of(const Mechanism& mechanism) {
  const CompositionCapability* const form = composition_of(mechanism);
  require(form, "[{}] the mechanism has no composed form", mechanism.name());
  return *form;
}

template <class T>
Var<T> compose(const Mechanism& mechanism, const ComposedInput<T>& in) {
  const auto composed = [&] {
    try {
      return std::get<Var<T>>(form_of(mechanism).composed(in));
    } catch (const Error& error) {
      fail("[{}] compose(): {}", mechanism.name(), error.what());
    }
  };
  const Var<T> out = composed();
  require(static_cast<bool>(out), "[{}] compose() returns no value", mechanism.name());
  const Shape expected{in.shape.heads, in.shape.queries, in.shape.value_width};
  require(out.shape() == expected, "[{}] compose() returns shape {}; expected [heads, queries, channels] = {}",
          mechanism.name(), out.shape(), expected);
  return out;
}

template <class T, class F>
void for_heads(const Heads<T>& heads, const F& f) {
  for (Index h = 0; h < heads.count; ++h)
    for (Index i = 0; i < heads.first.rows; ++i) f(heads[h][i], (h * heads.first.rows + i) * heads.first.columns);
}

/// Copies heads to memory of the tape. Returns the copy as one tensor [H, rows, columns].
template <class T>
View<const T> as_tensor(Tape<T>& tape, const Heads<const T>& heads) {
  const Index columns = heads.first.columns;
  const Shape shape{heads.count, heads.first.rows, columns};
  T* const copy = tape.memory(shape.elements());
  for_heads(heads, [=](const T* row, Index at) { std::copy_n(row, columns, copy + at); });
  return {copy, shape};
}

template <class T>
void copy_to_heads(View<const T> x, Update update, const Heads<T>& heads) {
  for_heads(heads, [&](T* row, Index at) { write_all(update, heads.first.columns, x.data() + at, row); });
}

/// The operands of a call on a tape: inputs with gradients, or constants.
template <class T>
class Operands {
 public:
  Operands(Tape<T>& tape, const AttentionInput<T>& in, bool gradients) {
    const auto put = [&](View<const T> x) { return gradients ? tape.input(x) : tape.constant(x); };
    const auto put_heads = [&](const Heads<const T>& heads) {
      return heads.count > 0 && heads.first.columns > 0 ? put(as_tensor(tape, heads)) : Var<T>{};
    };
    input_ = {in.shape, put_heads(in.q), put_heads(in.k), put_heads(in.v), {}};
    for (const View<const T>& parameter : in.parameters) parameters_.push_back(put(parameter));
    input_.parameters = parameters_;
  }

  const ComposedInput<T>& input() const { return input_; }

 private:
  std::vector<Var<T>> parameters_;
  ComposedInput<T> input_;
};

/// Returns the operations of a composed mechanism on this shape, without computing them.
std::vector<TraceEntry> trace_of(const Mechanism& mechanism, const AttentionShape& shape) {
  std::vector<TraceEntry> trace;
  Tape<float> tape({.execution = {.dry_run = true}, .observers = {.trace = &trace}});
  const auto put = [&](const Shape& x) { return x.elements() > 0 ? tape.input({nullptr, x}) : Var<float>{}; };
  const auto [q, k, v] = composed_operands(mechanism, shape);
  std::vector<Var<float>> parameters;
  for (const ParameterSpec& spec : mechanism.parameters(shape)) parameters.push_back(tape.input({nullptr, spec.shape}));
  compose<float>(mechanism, {shape, put(q), put(k), put(v), parameters});
  return trace;
}

/// Returns the maximum number of elements of tape memory that a tensor takes, including padding to the alignment.
Index aligned(Index elements) { return elements + static_cast<Index>(alignment / sizeof(float)); }

}  // namespace

std::array<Shape, 3> composed_operands(const Mechanism& mechanism, const AttentionShape& s) {
  const AttentionLayout layout = mechanism.layout(s.heads * s.value_width, s.heads);
  return {Shape{s.heads, s.queries, layout.query_width > 0 ? s.width : 0},
          Shape{layout.key_heads, s.keys, layout.key_width > 0 ? s.width : 0},
          Shape{layout.key_heads, s.keys, s.value_width}};
}

template <class T>
Var<T> step(const char* name, Var<T> x) {
  if constexpr (std::is_same_v<T, double>) {
    const StepObserver* const observer = StepObserver::current();
    if (!observer) return x;
    require(x.shape().rank() == 3, "[step] {} has shape {}; expected [heads, rows, columns]", name, x.shape());
    const Shape shape = x.shape();
    const auto report = [=](const char* of, const double* data) {
      for (Index h = 0; h < shape[0]; ++h)
        observer->see(of, h, Matrix<const double>(data + h * shape[1] * shape[2], shape[1], shape[2]));
    };
    report(name, x.data());
    return x.tape().record(
        {"step", {}}, shape, {x}, [=](double* y) { std::copy_n(x.data(), x.size(), y); },
        [=](const Adjoint<double>& dy) {
          report(fmt::format("d{}", name).c_str(), dy.data());
          dy.give_to(x);
        });
  }
  return x;
}

Index composed_memory(const Mechanism& mechanism, const AttentionShape& shape) {
  // Memory for values and gradients of q, k, v and results, gradients of parameters, saved tensors, and a closure of up
  // to a kilobyte per operation.
  constexpr Index closure = 1024 / sizeof(float);
  Index elements = 0;
  for (const Shape& x : composed_operands(mechanism, shape)) elements += 2 * aligned(x.elements());
  for (const ParameterSpec& spec : mechanism.parameters(shape)) elements += aligned(spec.shape.elements());
  for (const TraceEntry& entry : trace_of(mechanism, shape))
    elements += 2 * aligned(entry.result.elements()) + aligned(entry.saved) + closure;
  return elements;
}

Cost composed_cost(const Mechanism& mechanism, const AttentionShape& shape) {
  const std::vector<TraceEntry> trace = trace_of(mechanism, shape);
  Cost cost;
  for (const TraceEntry& entry : trace) {
    cost.forward += entry.cost.forward;
    cost.forward_contractions += entry.cost.forward_contractions;
  }
  cost.attention_exp = cost.forward.exp;
  for_each_gradient(trace, [&](std::size_t i, const TraceEntry::Value* operand, bool joins) {
    if (!operand) {
      cost.backward += trace[i].cost.backward;
      cost.backward_contractions += trace[i].cost.backward_contractions;
    } else if (joins) {
      cost.backward.add += trace[i].join_additions(*operand);
    }
  });
  cost.backward += cost.forward;
  for (const ParameterSpec& spec : mechanism.parameters(shape)) cost.backward.add += spec.shape.elements();
  return cost;
}

template <class T>
void composed_forward(const Mechanism& mechanism, const AttentionInput<T>& in, const Heads<T>& out,
                      std::span<T> memory) {
  Tape<T> tape({}, memory);
  const Operands<T> operands(tape, in, false);
  copy_to_heads(compose(mechanism, operands.input()).value(), Update::assign, out);
}

template <class T>
void composed_backward(const Mechanism& mechanism, const AttentionInput<T>& in, const Heads<const T>& dout,
                       std::span<T> memory, const AttentionGradient<T>& gradient) {
  Tape<T> tape({}, memory);
  const Operands<T> operands(tape, in, true);
  const Var<T> out = compose(mechanism, operands.input());
  require(tape.wanted(out), "[{}] compose() returns a value that depends on no operand", mechanism.name());
  tape.backward(out, as_tensor(tape, dout));
  const auto give = [&](Var<T> x, const Heads<T>& to) {
    if (x) copy_to_heads(tape.gradient(x), gradient.update, to);
  };
  give(operands.input().q, gradient.q);
  give(operands.input().k, gradient.k);
  give(operands.input().v, gradient.v);
  for (std::size_t i = 0; i < gradient.parameters.size(); ++i) {
    const View<const T> from = tape.gradient(operands.input().parameters[i]);
    write_all(Update::accumulate, from.size(), from.data(), gradient.parameters[i].data());
  }
}

template <class T>
void composed_map(const Mechanism& mechanism, const AttentionInput<T>& in, const Heads<T>& map) {
  Tape<T> tape;
  const Operands<T> operands(tape, in, false);
  const Shape v = operands.input().v.shape();
  ComposedInput<T> identity = operands.input();
  identity.shape.value_width = v[1];
  identity.v = tape.constant(Shape{v[0], v[1], v[1]}, [M = v[1]](Index i) { return i % M == i / M % M ? 1 : 0; });
  const auto map_times_identity = [&] {
    try {
      return compose(mechanism, identity);
    } catch (const Error& error) {
      fail("[{}] the composed form has no map, since it rejects the identity as v: {}; let maps() return null",
           mechanism.name(), error.what());
    }
  };
  const Var<T> found = map_times_identity(), out = compose(mechanism, operands.input());
  copy_to_heads(found.value(), Update::assign, map);
  // Checks that out = map v up to rounding, relative to the sum of the terms' magnitudes.
  const double tolerance = std::is_same_v<T, float> ? 1e-4 : 1e-9;
  const Index group = in.shape.heads / v[0];
  for (Index h = 0; h < in.shape.heads; ++h)
    for (Index i = 0; i < in.shape.queries; ++i)
      for (Index c = 0; c < v[2]; ++c) {
        double sum = 0, size = 1e-6;
        for (Index j = 0; j < v[1]; ++j) {
          const double term = static_cast<double>(map[h](i, j)) * static_cast<double>(in.v[h / group](j, c));
          sum += term, size += std::abs(term);
        }
        const double got = static_cast<double>(out.data()[(h * in.shape.queries + i) * v[2] + c]);
        require(std::abs(got - sum) <= tolerance * size,
                "[{}] the composed form has no map: its output is {}, not the map times v = {}; let maps() return null",
                mechanism.name(), got, sum);
      }
}

#define INSTANTIATE(T)                                                                                             \
  template Var<T> step(const char*, Var<T>);                                                                       \
  template void composed_forward(const Mechanism&, const AttentionInput<T>&, const Heads<T>&, std::span<T>);       \
  template void composed_backward(const Mechanism&, const AttentionInput<T>&, const Heads<const T>&, std::span<T>, \
                                  const AttentionGradient<T>&);                                                    \
  template void composed_map(const Mechanism&, const AttentionInput<T>&, const Heads<T>&);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
