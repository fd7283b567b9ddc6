// Counted: a number that counts its operations. Running an operation's code on it yields the exact cost that the
// operation's closed form must state.
#pragma once

#include "heed/cost/counts.h"

#include <variant>

namespace heed {

/// A double that counts operations in a thread-local tally. It also records its origin, so that products, squared
/// differences and absolute differences are recognised as contractions when they are summed.
class Counted {
 public:
  Counted() = default;
  constexpr Counted(double value) : value_(value) {}

  /// Returns the operations counted on this thread; assign {} to reset.
  static Counts& tally();

  /// Returns the contractions among the operations counted on this thread, in the papers' convention: a product added
  /// to a sum is 1 mul and 1 add, a squared difference 1 mul and 2 add, an absolute difference 2 add. A sum's first
  /// term counts as added.
  static Counts& contractions();

  /// Returns true for a product that has not been added to a sum.
  bool is_product() const { return origin_ == Origin::product; }
  /// Counts a term, such as a product, as a sum of one term.
  friend Counted as_sum(Counted x);

  explicit operator double() const { return value_; }

  friend Counted operator-(Counted a) { return {-a.value_, a.origin_}; }
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
  enum class Origin : unsigned char { number, product, difference, squared_difference, absolute_difference, sum };
  constexpr Counted(double value, Origin origin) : value_(value), origin_(origin) {}

  bool is_term() const;     ///< true if adding it to a sum counts as a contraction
  bool is_addable() const;  ///< true for a term, a sum of terms, or 0, the initial value of sums
  void count_term() const;  ///< counts a contraction if this is a term

  double value_ = 0;
  Origin origin_ = Origin::number;
};

/// Returns x, the result of a sum. If x is a Counted that is a single term, counts it as a contraction.
template <class T>
T as_sum(T x) {
  return x;
}

/// X<T> for one of the number types that heed's code is compiled for. Virtual functions, which cannot be templates,
/// take and return it.
template <template <class> class X>
using OfNumber = std::variant<X<float>, X<double>, X<Counted>>;

}  // namespace heed
