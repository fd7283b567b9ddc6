// Mechanisms composed of elementary operations: the forward pass is written with operations on the tape, which provides
// the gradients. A mechanism with a hand-written backward pass may have a composed form too; `heed gradcheck` compares
// both.
#pragma once

#include "heed/attention/capabilities/map.h"
#include "heed/attention/mechanism_base.h"
#include "heed/tape/tape.h"

namespace heed {

/// Operands of a composed mechanism: all heads of one image.
template <class T>
struct ComposedInput {
  AttentionShape shape;
  Var<T> q, k, v;                        ///< [H, N, d], [H', M, d'], [H', M, e]; absent if not used
  std::span<const Var<T>> parameters{};  ///< those of the mechanism, in declaration order
};

/// Interface to a mechanism's composed form; see composition_of().
class CompositionCapability {
 public:
  virtual ~CompositionCapability() = default;

  /// Records the mechanism on the tape of its operands; returns out [H, N, e].
  virtual OfNumber<Var> composed(const OfNumber<ComposedInput>& in) const = 0;

  /// Returns true if the mechanism has no hand-written passes.
  virtual bool only_form() const { return false; }
};

/// Returns the composed form of a mechanism; null if it has none.
inline const CompositionCapability* composition_of(const Mechanism& mechanism) {
  return dynamic_cast<const CompositionCapability*>(&mechanism);
}

/// Base of mechanisms with a composed form. Derived defines
///   compose(in)                           returns out [H, N, e], from ComposedInput<T>
template <class Derived>
class WithComposition : public CompositionCapability {
 public:
  OfNumber<Var> composed(const OfNumber<ComposedInput>& in) const final {
    return std::visit(
        [this](const auto& input) -> OfNumber<Var> {
          const auto& self = static_cast<const Derived&>(*this);
          static_assert(
              requires { self.compose(input); }, "compose must be Var<T> compose(const ComposedInput<T>& in) const");
          return self.compose(input);
        },
        in);
  }
};

/// Returns x [H, rows, columns], an intermediate result of a composed form, and names it. `heed gradcheck` compares x,
/// and its gradient under d + name, with the steps of these names in the hand-written form (attention/steps.h).
template <class T>
Var<T> step(const char* name, Var<T> x);

/// Returns the shapes of q [H, N, d], k [H', M, d'] and v [H', M, e] of a mechanism; unused ones have no elements.
std::array<Shape, 3> composed_operands(const Mechanism& mechanism, const AttentionShape& shape);

/// Returns the number of elements of memory for either pass of a composed mechanism on this shape.
Index composed_memory(const Mechanism& mechanism, const AttentionShape& shape);

/// Returns the cost of a composed mechanism, from its operations. The backward pass repeats the forward pass.
Cost composed_cost(const Mechanism& mechanism, const AttentionShape& shape);

/// Run the passes of a composed mechanism on a separate tape, in `memory` of composed_memory() elements. composed_map()
/// computes the output for v = I. It throws Error if there is no map, since the output is not linear in v or mixes
/// channels; such a mechanism overrides maps() to return null.
template <class T>
void composed_forward(const Mechanism& mechanism, const AttentionInput<T>& in, const Heads<T>& out,
                      std::span<T> memory);
template <class T>
void composed_backward(const Mechanism& mechanism, const AttentionInput<T>& in, const Heads<const T>& dout,
                       std::span<T> memory, const AttentionGradient<T>& gradient);
template <class T>
void composed_map(const Mechanism& mechanism, const AttentionInput<T>& in, const Heads<T>& map);

/// A mechanism whose passes, map, cost and memory follow from
///
///   static constexpr const char *mechanism_name, *summary, *complexity
///   template <class T> Var<T> compose(const ComposedInput<T>& in) const
///
/// and options(visit) and variants() if it has options. compose() also runs with shapes only, so it must not read
/// values, and tensors that it puts on the tape must outlive the backward pass: create constants with
/// Tape::constant(shape, rule). Dropout has no effect in it. It is slower than hand-written passes: every intermediate
/// result is stored, and the backward pass repeats the forward pass.
template <class Derived>
class ComposedMechanism : public MechanismBase<Derived>, public WithMap<Derived>, public WithComposition<Derived> {
 public:
  template <class Visitor>
  void options(Visitor&) {}
  static std::vector<OptionValues> variants() { return {{}}; }

  template <class T>
  std::span<T> scratch(const AttentionShape& shape, MemoryLayout<T>& layout) const {
    const Index elements = composed_memory(*this, shape);
    T* const memory = layout.numbers(elements);
    return {memory, memory ? static_cast<std::size_t>(elements) : 0};
  }
  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> out, NoMemory, std::span<T> memory) const {
    composed_forward(*this, in, out, memory);
  }
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T>, Heads<const T> dout, NoMemory, std::span<T> memory,
                    const AttentionGradient<T>& gradient) const {
    composed_backward(*this, in, dout, memory, gradient);
  }
  template <class T>
  void run_map(const AttentionInput<T>& in, Heads<T> map, NoMemory, std::span<T>) const {
    composed_map(*this, in, map);
  }
  Cost cost(const AttentionShape& shape) const override { return composed_cost(*this, shape); }
  bool only_form() const override { return true; }
};

}  // namespace heed
