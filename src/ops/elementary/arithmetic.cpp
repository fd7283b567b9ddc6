#include "heed/ops/elementary/arithmetic.h"

#include "elementwise.h"

#include "heed/cost/for_each_number.h"

namespace heed {

template <class T>
Var<T> add(Var<T> a, Var<T> b) {
  const auto of_dy = [](T, T, T, T dy) { return dy; };
  if (a.shape() != b.shape())
    return combine(
        "add", a, b, {.add = 1}, [](T x, T z) { return x + z; }, {}, of_dy, {}, of_dy);
  // If the gradient of a has no memory yet, as in residual connections, it takes over the memory of dy.
  Tape<T>& tape = tape_of("add", a, b);
  const Index n = a.size();
  Cost cost;
  cost.forward = {.add = n};
  cost.backward = repeated_counts(tape, a, b);
  return tape.record(
      {"add", cost}, a.shape(), {a, b},
      [=](T* y) {
        const T *pa = a.data(), *pb = b.data();
        for_row_ranges(n, 1, [=](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) y[i] = pa[i] + pb[i];
        });
      },
      [=](const Adjoint<T>& dy) {
        dy.add_to(b);
        dy.give_to(a);
      });
}

template <class T>
Var<T> sub(Var<T> a, Var<T> b) {
  return combine(
      "sub", a, b, {.add = 1}, [](T x, T z) { return x - z; }, {}, [](T, T, T, T dy) { return dy; }, {},
      [](T, T, T, T dy) { return -dy; });
}

template <class T>
Var<T> mul(Var<T> a, Var<T> b) {
  return combine(
      "mul", a, b, {.mul = 1}, [](T x, T z) { return x * z; }, {.mul = 1}, [](T, T z, T, T dy) { return z * dy; },
      {.mul = 1}, [](T x, T, T, T dy) { return x * dy; });
}

template <class T>
Var<T> div(Var<T> a, Var<T> b) {
  return combine(
      "div", a, b, {.div = 1}, [](T x, T z) { return x / z; }, {.div = 1}, [](T, T z, T, T dy) { return dy / z; },
      {.mul = 1, .div = 1}, [](T, T z, T y, T dy) { return -(y * dy / z); });
}

template <class T>
Var<T> neg(Var<T> x) {
  return elementwise(
      "neg", x, {}, {}, [](T z) { return -z; }, [](T, T, T dy) { return -dy; });
}

template <class T>
Var<T> scale(Var<T> x, double factor) {
  const T a(factor);
  return elementwise(
      "scale", x, {.mul = 1}, {.mul = 1}, [=](T z) { return a * z; }, [=](T, T, T dy) { return a * dy; });
}

#define INSTANTIATE(T)                 \
  template Var<T> add(Var<T>, Var<T>); \
  template Var<T> sub(Var<T>, Var<T>); \
  template Var<T> mul(Var<T>, Var<T>); \
  template Var<T> div(Var<T>, Var<T>); \
  template Var<T> neg(Var<T>);         \
  template Var<T> scale(Var<T>, double);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
