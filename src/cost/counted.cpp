// Defined as calls, not inline: inlining in every loop of every kernel would take a tenth of the compile time.
#include "heed/cost/counted.h"

#include "heed/base/math.h"

#include <cmath>

namespace heed {

Counts& Counted::tally() {
  thread_local Counts counts;
  return counts;
}

Counted operator+(Counted a, Counted b) { return ++Counted::tally().add, a.value_ + b.value_; }
Counted operator-(Counted a, Counted b) { return ++Counted::tally().add, a.value_ - b.value_; }
Counted operator*(Counted a, Counted b) { return ++Counted::tally().mul, a.value_ * b.value_; }
Counted operator/(Counted a, Counted b) { return ++Counted::tally().div, a.value_ / b.value_; }

bool operator<(Counted a, Counted b) { return ++Counted::tally().cmp, a.value_ < b.value_; }
bool operator<=(Counted a, Counted b) { return ++Counted::tally().cmp, a.value_ <= b.value_; }

Counted sqrt(Counted x) { return ++Counted::tally().sqrt, std::sqrt(x.value_); }
Counted exp(Counted x) { return ++Counted::tally().exp, math::exp(x.value_); }
Counted log(Counted x) { return ++Counted::tally().log, math::log(x.value_); }
Counted erf(Counted x) { return ++Counted::tally().erf, std::erf(x.value_); }
Counted tanh(Counted x) { return ++Counted::tally().other, math::tanh(x.value_); }
Counted pow(Counted x, Counted exponent) { return ++Counted::tally().other, math::pow(x.value_, exponent.value_); }
Counted abs(Counted x) { return ++Counted::tally().cmp, std::abs(x.value_); }

}  // namespace heed
