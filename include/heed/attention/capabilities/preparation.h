// Capability of mechanisms: prepared tensors, computed only from the mechanism's parameters, once per step instead of
// once per image.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Arguments of prepare().
template <class T>
struct AttentionPreparation {
  AttentionShape shape;
  std::span<const View<const T>> parameters;  ///< of the mechanism, in declaration order
  bool training = false;
  View<const T> noise{};  ///< standard Gumbel noise of shape noise(shape), in training
  AttentionMemory<T> prepared;
};

/// Arguments of prepare_backward().
template <class T>
struct AttentionPreparationBackward {
  AttentionPreparation<T> of;  ///< arguments of prepare(), with its result in `prepared`
  AttentionMemory<T> dprepared;
  std::span<const View<T>> gradient;  ///< gradients of the parameters; always accumulated
};

/// Interface for callers, returned by Mechanism::preparation(). Nothing is prepared if memory(shape).prepared is 0.
class PreparationCapability {
 public:
  virtual ~PreparationCapability() = default;

  /// Returns the shape of the noise used in training, which all images of a step share; Shape{0} if there is none.
  virtual Shape noise(const AttentionShape&) const { return Shape{0}; }

  /// Returns the cost of the preparation, per step.
  virtual Cost preparation_cost(const AttentionShape&) const { return {}; }

  virtual void prepare(const OfNumber<AttentionPreparation>& call) const = 0;
  virtual void prepare_backward(const OfNumber<AttentionPreparationBackward>& call) const = 0;
};

/// Base of mechanisms with prepared tensors. Derived defines
///   prepared(shape, layout)              the layout of their memory
///   run_prepare(of, prepared), run_prepare_backward(of, prepared, dprepared, gradient)
/// and reads the prepared tensors in its passes with prepared_of(in.shape, in.prepared).
template <class Derived>
class WithPreparation : public PreparationCapability {
 public:
  void prepare(const OfNumber<AttentionPreparation>& call) const final {
    std::visit(
        [this](const auto& of) {
          static_assert(
              requires { self().run_prepare(of, self().prepared_of(of.shape, of.prepared)); },
              "run_prepare must be run_prepare(const AttentionPreparation<T>& of, prepared) const, prepared of the "
              "type that prepared() returns");
          self().run_prepare(of, self().prepared_of(of.shape, of.prepared));
        },
        call);
  }
  void prepare_backward(const OfNumber<AttentionPreparationBackward>& call) const final {
    std::visit(
        [this](const auto& c) {
          static_assert(
              requires {
                self().run_prepare_backward(c.of, self().prepared_of(c.of.shape, c.of.prepared),
                                            self().prepared_of(c.of.shape, c.dprepared), c.gradient);
              },
              "run_prepare_backward must be run_prepare_backward(const AttentionPreparation<T>& of, prepared, "
              "dprepared, std::span<const View<T>> gradient) const, prepared and dprepared of the type that prepared() "
              "returns");
          self().run_prepare_backward(c.of, self().prepared_of(c.of.shape, c.of.prepared),
                                      self().prepared_of(c.of.shape, c.dprepared), c.gradient);
        },
        call);
  }

 private:
  const Derived& self() const { return static_cast<const Derived&>(*this); }
};

/// Returns the shape of the noise that a mechanism uses in training.
inline Shape noise_shape(const Mechanism& mechanism, const AttentionShape& shape) {
  const PreparationCapability* const preparation = mechanism.preparation();
  return preparation ? preparation->noise(shape) : Shape{0};
}

/// Returns the cost of a mechanism's preparation, per step.
inline Cost preparation_cost(const Mechanism& mechanism, const AttentionShape& shape) {
  const PreparationCapability* const preparation = mechanism.preparation();
  return preparation ? preparation->preparation_cost(shape) : Cost{};
}

}  // namespace heed
