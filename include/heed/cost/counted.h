// Counted: a number that counts its operations. Running an operation's own code on it yields the exact cost that the
// operation's closed form must state.
#pragma once

#include "heed/cost/counts.h"

#include <variant>

namespace heed {

/// A double that counts operations in a thread-local tally. It also stores how it was computed, so that products,
/// squared differences and absolute differences are recognised as contractions when they are added up.
class Counted {
 public:
  Counted() = default;
  constexpr Counted(double value) : value_(value) {}

  /// The operations counted on this thread; assign {} to reset.
  static Counts& tally();

  /// The contractions among them, as papers count: a product that is added into a sum of products is 1 mul and 1 add,
  /// a squared difference 1 mul and 2 add, an absolute difference 2 add. The first term of a sum is added, too.
  static Counts& contractions();

  /// Is this a product that was not added into a sum?
  bool is_product() const { return origin_ == Origin::product; }
  /// Counts a product as a sum of one term.
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

  bool is_term() const;     ///< would it be counted when added into a sum?
  bool is_addable() const;  ///< is it such a term, a sum of terms, or 0, which sums begin with?
  void count_term() const;  ///< counts it, if it is a term

  double value_ = 0;
  Origin origin_ = Origin::number;
};

/// Returns x, the sum of all its terms; a Counted counts a sum of a single product as a contraction.
template <class T>
T as_sum(T x) {
  return x;
}

/// An X<T> for any of the number types that heed's code is compiled for. Virtual functions use it for arguments and
/// results, since they cannot be templates.
template <template <class> class X>
using OfNumber = std::variant<X<float>, X<double>, X<Counted>>;

}  // namespace heed
