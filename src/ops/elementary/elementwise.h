// Elementwise operations of one operand, and of two with broadcasting. An operation is given by the function of an
// element and its derivatives.
#pragma once

#include "strided.h"

namespace heed {

/// Records y = f(x) element by element, with dx += df(x, y, dy). `forward` and `backward` are the counts per element.
template <class T, class F, class D>
Var<T> elementwise(const char* operation, Var<T> x, const Counts& forward, const Counts& backward, const F& f,
                   const D& df) {
  Tape<T>& tape = tape_of(operation, x);
  const Index n = x.size();
  Cost cost;
  cost.forward = n * forward;
  cost.backward = n * backward;
  return tape.record(
      {operation, cost}, x.shape(), {x},
      [=](T* y) {
        for_row_ranges(n, 1, [=, px = x.data()](Index begin, Index end) {
          for (Index i = begin; i < end; ++i) y[i] = f(px[i]);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto dx = tape.target(x))
          for_row_ranges(n, 1, [=, px = x.data(), py = dy.value(), pdy = dy.data()](Index begin, Index end) {
            for (Index i = begin; i < end; ++i) write(dx.update, dx.data[i], df(px[i], py[i], pdy[i]));
          });
      });
}

/// Records y = f(a, b). The gradients are da += df_a(a, b, y, dy), db += df_b(a, b, y, dy), element by element; `for_a`
/// and `for_b` are their counts per element.
template <class T, class F, class A, class B>
Var<T> combine(const char* operation, Var<T> a, Var<T> b, const Counts& forward, const F& f, const Counts& for_a,
               const A& df_a, const Counts& for_b, const B& df_b) {
  Tape<T>& tape = tape_of(operation, a, b);
  const Shape shape = broadcast_shape(operation, a.shape(), b.shape());
  const StridedLoop<3> loop(
      shape, {strides_of(shape), broadcast_strides(a.shape(), shape), broadcast_strides(b.shape(), shape)});
  const Index n = loop.elements();
  Cost cost;
  cost.forward = n * forward;
  if (tape.wanted(a)) cost.backward += n * for_a + broadcast_sum_counts(n, a.size());
  if (tape.wanted(b)) cost.backward += n * for_b + broadcast_sum_counts(n, b.size());
  cost.backward += repeated_counts(tape, a, b);
  return tape.record(
      {operation, cost}, shape, {a, b},
      [=](T* y) {
        loop.for_all_runs([=, pa = a.data(), pb = b.data()](const auto& run) {
          for (Index j = 0; j < run.count; ++j) y[run.at(0, j)] = f(pa[run.at(1, j)], pb[run.at(2, j)]);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *pa = a.data(), *pb = b.data(), *py = dy.value(), *pdy = dy.data();
        const auto term = [=](const auto& df) {
          return [=](const auto& run, Index j) {
            return df(pa[run.at(1, j)], pb[run.at(2, j)], py[run.at(0, j)], pdy[run.at(0, j)]);
          };
        };
        if (const auto da = tape.target(a)) add_terms(loop, 1, a.size(), da.update, da.data, term(df_a));
        if (const auto db = tape.target(b)) add_terms(loop, 2, b.size(), db.update, db.data, term(df_b));
      });
}

}  // namespace heed
