// Counted: a number that counts what is done to it. Running an operation's own code on it yields the exact
// cost that the operation's closed form must state.
#pragma once

#include "heed/cost/counts.h"

#include <cmath>
#include <variant>

namespace heed {

class Counted {
 public:
  Counted() = default;
  constexpr Counted(double value) : value_(value) {}

  /// Everything counted so far on this thread; assign {} to start anew.
  static Counts& tally() {
    thread_local Counts counts;
    return counts;
  }

  explicit operator double() const { return value_; }

  friend Counted operator-(Counted a) { return -a.value_; }
  friend Counted operator+(Counted a, Counted b) { return ++tally().add, a.value_ + b.value_; }
  friend Counted operator-(Counted a, Counted b) { return ++tally().add, a.value_ - b.value_; }
  friend Counted operator*(Counted a, Counted b) { return ++tally().mul, a.value_ * b.value_; }
  friend Counted operator/(Counted a, Counted b) { return ++tally().div, a.value_ / b.value_; }
  Counted& operator+=(Counted b) { return *this = *this + b; }
  Counted& operator-=(Counted b) { return *this = *this - b; }
  Counted& operator*=(Counted b) { return *this = *this * b; }
  Counted& operator/=(Counted b) { return *this = *this / b; }

  friend bool operator<(Counted a, Counted b) { return ++tally().cmp, a.value_ < b.value_; }
  friend bool operator>(Counted a, Counted b) { return b < a; }
  friend bool operator<=(Counted a, Counted b) { return ++tally().cmp, a.value_ <= b.value_; }
  friend bool operator>=(Counted a, Counted b) { return b <= a; }

  friend Counted sqrt(Counted x) { return ++tally().sqrt, std::sqrt(x.value_); }
  friend Counted exp(Counted x) { return ++tally().exp, std::exp(x.value_); }
  friend Counted log(Counted x) { return ++tally().log, std::log(x.value_); }
  friend Counted erf(Counted x) { return ++tally().erf, std::erf(x.value_); }
  friend Counted abs(Counted x) { return ++tally().cmp, std::abs(x.value_); }

 private:
  double value_ = 0;
};

/// An X<T> for one of the number types that heed's code is compiled for. Virtual functions take and give these, since
/// they cannot be templates.
template <template <class> class X>
using OfNumber = std::variant<X<float>, X<double>, X<Counted>>;

}  // namespace heed
