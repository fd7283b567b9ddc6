// add, mul, scale: element by element.
#pragma once

#include "heed/ops/rows.h"

namespace heed {

/// y = a + b, of equal shapes. da += dy, db += dy.
template <class T>
Var<T> add(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("add", a, b);
  require(a.shape() == b.shape(), "[add] a has shape {}, b has {}; they must match", a.shape(), b.shape());
  const Index n = a.size();
  Cost cost;
  cost.forward = {.add = n};
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

/// y = a b element by element, of equal shapes. da += b dy, db += a dy.
template <class T>
Var<T> mul(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("mul", a, b);
  require(a.shape() == b.shape(), "[mul] a has shape {}, b has {}; they must match", a.shape(), b.shape());
  const Index n = a.size();
  Cost cost;
  cost.forward = {.mul = n};
  cost.backward = {.mul = 2 * n};
  const auto times = [](Index count, const T* x, const T* dy, const typename Tape<T>::Target& d) {
    for_row_ranges(count, 1, [=](Index begin, Index end) {
      for (Index i = begin; i < end; ++i) write(d.update, d.data[i], x[i] * dy[i]);
    });
  };
  return tape.record(
      {"mul", cost}, a.shape(), {a, b},
      [=](T* y) {
        times(n, a.data(), b.data(), {y, Update::assign});
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto da = tape.target(a)) times(n, b.data(), dy.data(), da);
        if (const auto db = tape.target(b)) times(n, a.data(), dy.data(), db);
      });
}

/// y = factor x. dx += factor dy.
template <class T>
Var<T> scale(Var<T> x, double factor) {
  Tape<T>& tape = tape_of("scale", x);
  const Index n = x.size();
  Cost cost;
  cost.forward = cost.backward = {.mul = n};
  return tape.record(
      {"scale", cost}, x.shape(), {x},
      [=](T* y) {
        const T* const px = x.data();
        for (Index i = 0; i < n; ++i) y[i] = T(factor) * px[i];
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x))
          for (Index i = 0; i < n; ++i) write(dx.update, dx.data[i], T(factor) * dy.data()[i]);
      });
}

}  // namespace heed
