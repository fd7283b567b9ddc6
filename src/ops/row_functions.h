// Row functions: activations and norms, alone or fused with a linear layer.
//
// A row function f maps each row of x [rows, n] to a row. It is a small value that operations copy, with
//
//   parameters                    two operands, either of which may be empty
//   name, linear_name             the operation's name in rows_of and linear_of
//   work()                        elementary operations per row
//   forward(first, x, y)          y = f(x) for a range of rows that begins at row `first`; dense matrices
//   backward(first, x, dy, update, dx, fx)
//                                 dx (+)= (df/dx)^T dy for these rows, and fx = f(x) unless fx is empty
//   sums(tape)                    number of elements of its parameters' gradients; 0 if none is wanted
//   add_sums(tape, first, x, dy, update, sums)
//                                 sums (+)= these rows' contribution to the gradients of the parameters
//   give_sums(tape, sums)         adds the sums over all rows to the parameters' gradients
//   forward_counts(rows), backward_counts(rows), recompute_counts(rows), sums_counts(rows)
//                                 counts of forward(), backward() without fx, fx in backward(), add_sums()
#pragma once

#include "linear_parts.h"

namespace heed {

/// Computes y = f(x): x and y [..., n]. The backward pass uses x and the values that f saved.
template <class T, class F>
Var<T> rows_of(const F& f, Var<T> x) {
  Tape<T>& tape = tape_of(f.name, x, f.parameters[0], f.parameters[1]);
  const Index rows = x.shape().rows(), n = x.shape().row_size();
  Cost cost;
  cost.forward = f.forward_counts(rows);
  cost.backward = f.backward_counts(rows) + f.sums_counts(rows);
  return tape.record(
      {f.name, cost}, x.shape(), {x, f.parameters[0], f.parameters[1]},
      [=](T* y) {
        for_row_ranges(rows, f.work(), [=, from = x.matrix(), to = Matrix<T>(y, rows, n)](Index begin, Index end) {
          f.forward(begin, from.middle_rows(begin, end - begin), to.middle_rows(begin, end - begin));
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const Matrix<const T> mx = x.matrix(), mdy = dy.matrix();
        if (const Index count = f.sums(tape)) {
          const typename Tape<T>::Scratch sums(tape, count);
          f.add_sums(tape, 0, mx, mdy, Update::assign, sums.data());
          f.give_sums(tape, sums.data());
        }
        if (const auto dx = tape.target(x))
          for_row_ranges(rows, f.work(), [=, mdx = dx.matrix(rows, n)](Index begin, Index end) {
            const auto range = [=](auto m) { return m.middle_rows(begin, end - begin); };
            f.backward(begin, range(mx), range(mdy), dx.update, range(mdx), {});
          });
      });
}

/// Computes y = f(x) W^T + b + r: x [..., I], W [O, I], bias b [O] and residual r [..., O] optional, y [..., O].
///
/// Equals linear(rows_of(f, x), W, b, r), but f(x) is neither saved nor stored as a whole in the forward pass: the
/// product reads a few rows of it at a time from the cache. With da = dy W, the gradient of f(x), also computed for a
/// few rows at a time,
///
///   dx += (df/dx)^T da,  dW += dy^T f(x),  db += sum over rows of dy,  dr += dy,
///
/// where f(x) is recomputed together with dx and, unlike in the forward pass, stored as a whole, since dW sums over all
/// rows.
template <class T, class F>
Var<T> linear_of(const F& f, Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  Tape<T>& tape = tape_of(f.linear_name, x, f.parameters[0], f.parameters[1], weight, bias, residual);
  const LinearSizes sizes = linear_sizes(f.linear_name, x, weight, bias, residual);
  const Index rows = sizes.rows, in = sizes.in, out = sizes.out;
  const LinearProducts<T> products(tape, weight);
  const bool needs_dx = tape.wanted(x), needs_sums = f.sums(tape) > 0, needs_da = needs_dx || needs_sums;
  Cost cost = linear_cost(rows, in, out, static_cast<bool>(bias), static_cast<bool>(residual), needs_da);
  cost.forward += f.forward_counts(rows);
  cost.backward += needs_dx ? f.backward_counts(rows) + f.recompute_counts(rows) : f.forward_counts(rows);
  if (needs_sums) cost.backward += f.sums_counts(rows);

  const Index at_once = std::clamp<Index>(rows, 1, rows_in_cache(in));
  // Calls g(first, count) for a few rows at a time. Calls g once even if there are no rows, so that sums are zeroed.
  const auto for_some_rows = [=](const auto& g) {
    for (Index first = 0; first == 0 || first < rows; first += at_once) g(first, std::min(at_once, rows - first));
  };
  return tape.record(
      {f.linear_name, cost}, sizes.y, {x, f.parameters[0], f.parameters[1], weight, bias, residual},
      [=, &tape](T* y) {
        const T* const pb = bias ? bias.data() : nullptr;
        const Matrix<const T> mx = x.matrix(), mr = residual ? residual.matrix() : Matrix<const T>{};
        const Matrix<T> my(y, rows, out);
        const typename Tape<T>::Scratch scratch(tape, at_once * in);
        const Matrix<T> fx(scratch.data(), at_once, in);
        for_some_rows([=](Index first, Index count) {
          for_row_ranges(count, f.work(), [=](Index begin, Index end) {
            f.forward(first + begin, mx.middle_rows(first + begin, end - begin), fx.middle_rows(begin, end - begin));
          });
          products.forward(fx.top_rows(count), pb, mr ? mr.middle_rows(first, count) : mr,
                           my.middle_rows(first, count));
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const typename Tape<T>::Scratch all(tape, rows * in), some(tape, needs_da ? at_once * in : 0);
        const typename Tape<T>::Scratch sums(tape, f.sums(tape));
        const Matrix<const T> mx = x.matrix(), mdy = dy.matrix();
        const Matrix<T> fx(all.data(), rows, in), da(some.data(), at_once, in);
        const auto dx = tape.target(x);
        const Matrix<T> mdx = dx.matrix(rows, in);
        for_some_rows([&](Index first, Index count) {
          if (needs_da) products.input_gradient(mdy.middle_rows(first, count), Update::assign, da.top_rows(count));
          if (needs_sums)
            f.add_sums(tape, first, mx.middle_rows(first, count), da.top_rows(count), term_update(first), sums.data());
          for_row_ranges(count, f.work(), [=](Index begin, Index end) {
            const Index row = first + begin;
            const auto range = [=](auto m) { return m.middle_rows(row, end - begin); };
            if (dx)
              f.backward(row, range(mx), da.middle_rows(begin, end - begin), dx.update, range(mdx), range(fx));
            else
              f.forward(row, range(mx), range(fx));
          });
        });
        if (needs_sums) f.give_sums(tape, sums.data());
        bias_backward(tape, bias, mdy);
        products.weight_gradient(fx, mdy, tape.target(weight));
        if (residual) dy.give_to(residual);
      });
}

}  // namespace heed
