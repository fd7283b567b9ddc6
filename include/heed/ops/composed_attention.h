// Mechanisms composed of elementary operations: the forward pass is written with operations of the tape, which gives
// the gradients. A mechanism that has a hand-written backward pass may have a composed form too, with which `heed
// gradcheck` compares it.
#pragma once

#include "heed/attention/capabilities/map.h"
#include "heed/attention/mechanism_base.h"
#include "heed/tape/tape.h"

namespace heed {

/// Operands of a composed mechanism: all heads of one image.
template <class T>
struct ComposedInput {
  AttentionShape shape;
  Var<T> q, k, v;  ///< [H, N, d], [H', M, d'], [H', M, e]; those that it does not use are left out
  std::span<const Var<T>> parameters{};  ///< of the mechanism, in the order of their declaration
};

/// The interface for callers, see composition_of().
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

/// Base of a mechanism with a composed form, which defines
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

/// Names an intermediate result of a composed form, which `heed gradcheck` compares with what the hand-written form
/// reports under this name (attention/steps.h): x [H, rows, columns], and its gradient as d + name.
template <class T>
Var<T> step(const char* name, Var<T> x);

/// Shapes of q [H, N, d], k [H', M, d'] and v [H', M, e] of a mechanism; those that it does not use have no elements.
std::array<Shape, 3> composed_operands(const Mechanism& mechanism, const AttentionShape& shape);

/// Elements of memory for either pass of a composed mechanism on this shape.
Index composed_memory(const Mechanism& mechanism, const AttentionShape& shape);

/// Cost of a composed mechanism, from its operations. The backward pass runs forward once more.
Cost composed_cost(const Mechanism& mechanism, const AttentionShape& shape);

/// Passes of a composed mechanism on a tape of their own in `memory`, composed_memory() elements. The map is the output
/// for v = I. Throws Error if the output is not linear in v or mixes channels, so that there is no map; such a
/// mechanism overrides maps() to return null.
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
/// and options(visit) and variants() if it has options. compose() runs for shapes alone too, so it must not read
/// values, and tensors that it puts on the tape must outlive the backward pass: constants are made by
/// Tape::constant(shape, rule). Dropout has no effect in it. Slower than a hand-written one: every intermediate result
/// is stored, and the backward pass computes the forward pass once more.
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
