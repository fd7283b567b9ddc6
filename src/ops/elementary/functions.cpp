#include "heed/ops/elementary/functions.h"

#include "elementwise.h"

#include "heed/base/math.h"
#include "heed/cost/for_each_number.h"

#include <cmath>

namespace heed {

template <class T>
Var<T> exp(Var<T> x) {
  return elementwise(
      "exp", x, {.exp = 1}, {.mul = 1},
      [](T z) {
        using math::exp;
        return exp(z);
      },
      [](T, T y, T dy) { return y * dy; });
}

template <class T>
Var<T> log(Var<T> x) {
  return elementwise(
      "log", x, {.log = 1}, {.div = 1},
      [](T z) {
        using math::log;
        return log(z);
      },
      [](T z, T, T dy) { return dy / z; });
}

template <class T>
Var<T> sqrt(Var<T> x) {
  return elementwise(
      "sqrt", x, {.sqrt = 1}, {.mul = 1, .div = 1},
      [](T z) {
        using std::sqrt;
        return sqrt(z);
      },
      [](T, T y, T dy) { return T(0.5) * dy / y; });
}

template <class T>
Var<T> pow(Var<T> x, double p) {
  const T exponent(p), one_less(p - 1);
  const auto power = [](T z, T by) {
    using math::pow;
    return pow(z, by);
  };
  if (p == 0)  // the derivative p x^(p - 1) would be NaN at x = 0
    return elementwise(
        "pow", x, {.other = 1}, {}, [=](T z) { return power(z, exponent); }, [](T, T, T) { return T(0); });
  return elementwise(
      "pow", x, {.other = 1}, {.mul = 2, .other = 1}, [=](T z) { return power(z, exponent); },
      [=](T z, T, T dy) { return exponent * power(z, one_less) * dy; });
}

template <class T>
Var<T> abs(Var<T> x) {
  return elementwise(
      "abs", x, {.cmp = 1}, {.cmp = 2},
      [](T z) {
        using std::abs;
        return abs(z);
      },
      [](T z, T, T dy) {
        const bool positive = z > T(0), negative = z < T(0);
        return positive ? dy : negative ? -dy : T(0);
      });
}

template <class T>
Var<T> tanh(Var<T> x) {
  return elementwise(
      "tanh", x, {.other = 1}, {.mul = 2, .add = 1},
      [](T z) {
        using math::tanh;
        return tanh(z);
      },
      [](T, T y, T dy) { return (T(1) - y * y) * dy; });
}

template <class T>
Var<T> sigmoid(Var<T> x) {
  return elementwise(
      "sigmoid", x, {.add = 1, .div = 1, .exp = 1}, {.mul = 2, .add = 1},
      [](T z) {
        using math::exp;
        return T(1) / (T(1) + exp(-z));
      },
      [](T, T y, T dy) { return y * (T(1) - y) * dy; });
}

template <class T>
Var<T> maximum(Var<T> a, Var<T> b) {
  const auto share = [](T own, T other) {
    const bool more = own > other, less = own < other;
    return T(more ? 1 : less ? 0 : 0.5);
  };
  return combine(
      "maximum", a, b, {.cmp = 1}, [](T x, T z) { return x < z || std::isnan(static_cast<double>(z)) ? z : x; },
      {.mul = 1, .cmp = 2}, [=](T x, T z, T, T dy) { return share(x, z) * dy; }, {.mul = 1, .cmp = 2},
      [=](T x, T z, T, T dy) { return share(z, x) * dy; });
}

template <class T>
Var<T> where(Var<T> condition, Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("where", condition, a, b);
  const Shape shape = broadcast_shape("where", condition.shape(), broadcast_shape("where", a.shape(), b.shape()));
  const auto strides = [&](Var<T> x) { return broadcast_strides(x.shape(), shape); };
  const StridedLoop<4> loop(shape, {strides_of(shape), strides(condition), strides(a), strides(b)});
  const Index n = loop.elements();
  const auto holds = [](T value) { return static_cast<double>(value) != 0; };
  Cost cost;
  for (const Var<T>& x : {a, b})
    if (tape.wanted(x)) cost.backward += broadcast_sum_counts(n, x.size());
  cost.backward += repeated_counts(tape, a, b);
  return tape.record(
      {"where", cost}, shape, {condition, a, b},
      [=](T* y) {
        loop.for_all_runs([=, pc = condition.data(), pa = a.data(), pb = b.data()](const auto& run) {
          for (Index j = 0; j < run.count; ++j)
            y[run.at(0, j)] = holds(pc[run.at(1, j)]) ? pa[run.at(2, j)] : pb[run.at(3, j)];
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto term_where = [=, pc = condition.data(), pdy = dy.data()](bool chosen) {
          return [=](const auto& run, Index j) { return holds(pc[run.at(1, j)]) == chosen ? pdy[run.at(0, j)] : T(0); };
        };
        if (const auto da = tape.target(a)) add_terms(loop, 2, a.size(), da.update, da.data, term_where(true));
        if (const auto db = tape.target(b)) add_terms(loop, 3, b.size(), db.update, db.data, term_where(false));
      });
}

#define INSTANTIATE(T)                     \
  template Var<T> exp(Var<T>);             \
  template Var<T> log(Var<T>);             \
  template Var<T> sqrt(Var<T>);            \
  template Var<T> pow(Var<T>, double);     \
  template Var<T> abs(Var<T>);             \
  template Var<T> tanh(Var<T>);            \
  template Var<T> sigmoid(Var<T>);         \
  template Var<T> maximum(Var<T>, Var<T>); \
  template Var<T> where(Var<T>, Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
