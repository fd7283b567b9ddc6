// These functions are not inline: inlining them in every loop of every kernel would take a tenth of the compile time.
#include "heed/cost/counted.h"

#include "heed/base/math.h"

#include <cmath>

namespace heed {

Counts& Counted::tally() {
  thread_local Counts counts;
  return counts;
}

Counts& Counted::contractions() {
  thread_local Counts counts;
  return counts;
}

bool Counted::is_term() const {
  return origin_ == Origin::product || origin_ == Origin::squared_difference || origin_ == Origin::absolute_difference;
}

bool Counted::is_addable() const {
  return is_term() || origin_ == Origin::sum || (origin_ == Origin::number && value_ == 0);
}

void Counted::count_term() const {
  if (!is_term()) return;
  Counts& counts = contractions();
  counts.mul += origin_ != Origin::absolute_difference;
  counts.add += origin_ == Origin::product ? 1 : 2;
}

Counted as_sum(Counted x) {
  x.count_term();
  return x.is_term() ? Counted(x.value_, Counted::Origin::sum) : x;
}

Counted operator+(Counted a, Counted b) {
  ++Counted::tally().add;
  const double sum = a.value_ + b.value_;
  const bool numbers = a.origin_ == Counted::Origin::number && b.origin_ == Counted::Origin::number;
  if (numbers || !a.is_addable() || !b.is_addable()) return sum;
  a.count_term(), b.count_term();
  return {sum, Counted::Origin::sum};
}

Counted operator-(Counted a, Counted b) {
  ++Counted::tally().add;
  const double difference = a.value_ - b.value_;
  if (!b.is_term() || a.is_term() || !a.is_addable()) return {difference, Counted::Origin::difference};
  b.count_term();
  return {difference, Counted::Origin::sum};
}

Counted operator*(Counted a, Counted b) {
  ++Counted::tally().mul;
  const bool square =
      a.origin_ == Counted::Origin::difference && b.origin_ == Counted::Origin::difference && a.value_ == b.value_;
  return {a.value_ * b.value_, square ? Counted::Origin::squared_difference : Counted::Origin::product};
}

Counted operator/(Counted a, Counted b) { return ++Counted::tally().div, a.value_ / b.value_; }

bool operator<(Counted a, Counted b) { return ++Counted::tally().cmp, a.value_ < b.value_; }
bool operator<=(Counted a, Counted b) { return ++Counted::tally().cmp, a.value_ <= b.value_; }

Counted sqrt(Counted x) { return ++Counted::tally().sqrt, std::sqrt(x.value_); }
Counted exp(Counted x) { return ++Counted::tally().exp, math::exp(x.value_); }
Counted log(Counted x) { return ++Counted::tally().log, math::log(x.value_); }
Counted erf(Counted x) { return ++Counted::tally().erf, std::erf(x.value_); }
Counted tanh(Counted x) { return ++Counted::tally().other, math::tanh(x.value_); }
Counted pow(Counted x, Counted exponent) { return ++Counted::tally().other, math::pow(x.value_, exponent.value_); }

Counted abs(Counted x) {
  ++Counted::tally().cmp;
  const bool distance = x.origin_ == Counted::Origin::difference;
  return {std::abs(x.value_), distance ? Counted::Origin::absolute_difference : Counted::Origin::number};
}

}  // namespace heed
