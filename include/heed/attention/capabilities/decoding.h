// Capability of mechanisms with a causal form: decoding a sequence token by token.
#pragma once

#include "heed/attention/mechanism.h"

namespace heed {

/// Arguments of decode(): q, k and v have one row, that of token `position`; `state` and `sums` hold the state after
/// the preceding tokens. `in.shape.whole` is false: nothing is prepared.
template <class T>
struct AttentionDecoding {
  AttentionInput<T> in;
  Index position = 0;
  Heads<T> out;
  T* state = nullptr;
  double* sums = nullptr;
  T* scratch = nullptr;
};

/// Arguments of decode() in float or double; Counted does not decode.
using AnyDecoding = std::variant<AttentionDecoding<float>, AttentionDecoding<double>>;

/// Sizes of the state after a number of tokens, and of scratch memory for the next token.
struct AttentionStateSize {
  Index state = 0;    ///< elements of T
  Index sums = 0;     ///< elements of double: in float, the rounding errors of all tokens would add up
  Index scratch = 0;  ///< elements of T

  /// Adds the state size of another layer; both layers use the same scratch memory.
  AttentionStateSize& operator+=(const AttentionStateSize& other) {
    state += other.state, sums += other.sums, scratch = std::max(scratch, other.scratch);
    return *this;
  }
};

/// Interface for callers, returned by Mechanism::decoding().
class DecodingCapability {
 public:
  virtual ~DecodingCapability() = default;

  /// Returns the size of the state after `tokens` tokens. The state may grow with `tokens`: allocate memory for the
  /// longest sequence.
  virtual AttentionStateSize state_size(const AttentionShape& shape, Index tokens) const = 0;

  /// Computes row `position` of forward()'s out, up to rounding, and adds the token to the state. Requires causal=true.
  virtual void decode(const AnyDecoding& call) const = 0;
};

/// Base of mechanisms that decode. Derived defines
///   run_decode(call), state_size(shape, tokens)
template <class Derived>
class WithDecoding : public DecodingCapability {
 public:
  void decode(const AnyDecoding& call) const final {
    std::visit(
        [this](const auto& c) {
          const auto& self = static_cast<const Derived&>(*this);
          static_assert(
              requires { self.run_decode(c); },
              "run_decode must be run_decode(const AttentionDecoding<T>& call) const");
          self.run_decode(c);
        },
        call);
  }
};

}  // namespace heed
