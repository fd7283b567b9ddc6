// Capability of mechanisms: a term of the training loss that depends only on the mechanism's parameters.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Arguments of penalty().
template <class T>
struct AttentionPenalty {
  AttentionShape shape;
  std::span<const View<const T>> parameters;
  T factor{};                         ///< factor of the gradient
  std::span<const View<T>> gradient;  ///< always accumulated; empty if no gradient is needed
  T* penalty = nullptr;               ///< the result
};

/// Interface for callers, returned by Mechanism::penalty_term().
class PenaltyCapability {
 public:
  virtual ~PenaltyCapability() = default;

  /// Returns the cost per step of the term and its gradient.
  virtual Cost penalty_cost(const AttentionShape&) const { return {}; }

  /// Computes the term, which the loss contains once per step, and adds `factor` times its gradient to `gradient`.
  virtual void penalty(const OfNumber<AttentionPenalty>& call) const = 0;
};

/// Base of mechanisms with a penalty. Derived defines
///   run_penalty(call)                     returns the term
template <class Derived>
class WithPenalty : public PenaltyCapability {
 public:
  void penalty(const OfNumber<AttentionPenalty>& call) const final {
    std::visit(
        [this](const auto& c) {
          const auto& self = static_cast<const Derived&>(*this);
          static_assert(
              requires { *c.penalty = self.run_penalty(c); },
              "run_penalty must be T run_penalty(const AttentionPenalty<T>& call) const");
          *c.penalty = self.run_penalty(c);
        },
        call);
  }
};

}  // namespace heed
