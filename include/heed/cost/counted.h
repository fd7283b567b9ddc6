// Counted: a number that counts its operations. Running an operation's own code on it yields the exact cost that the
// operation's closed form must state.
#pragma once

#include "heed/cost/counts.h"

#include <variant>

namespace heed {

/// A double that counts operations in a thread-local tally.
class Counted {
 public:
  Counted() = default;
  constexpr Counted(double value) : value_(value) {}

  /// The operations counted on this thread; assign {} to reset.
  static Counts& tally();

  explicit operator double() const { return value_; }

  friend Counted operator-(Counted a) { return -a.value_; }
  friend Counted operator+(Counted a, Counted b);
  friend Counted operator-(Counted a, Counted b);
  friend Counted operator*(Counted a, Counted b);
  friend Counted operator/(Counted a, Counted b);
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  Counted& operator*=(Counted b) { return *this = *this * b; }
  Counted& operator/=(Counted b) { return *this = *this / b; }

  friend bool operator<(Counted a, Counted b);
  friend bool operator<=(Counted a, Counted b);
  friend bool operator>(Counted a, Counted b) { return b < a; }
  friend bool operator>=(Counted a, Counted b) { return b <= a; }

  friend Counted sqrt(Counted x);
  friend Counted exp(Counted x);
  friend Counted log(Counted x);
  friend Counted erf(Counted x);
  friend Counted abs(Counted x);
  friend Counted tanh(Counted x);
  friend Counted pow(Counted x, Counted exponent);

 private:
  double value_ = 0;
};

/// An X<T> for any of the number types that heed's code is compiled for. Virtual functions use it for arguments and
/// results, since they cannot be templates.
template <template <class> class X>
using OfNumber = std::variant<X<float>, X<double>, X<Counted>>;

}  // namespace heed
