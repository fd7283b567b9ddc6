#include "heed/ops/linear.h"

#include "heed/cost/for_each_number.h"

#include "linear_parts.h"

namespace heed {

template <class T>
Var<T> linear(Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  Tape<T>& tape = tape_of("linear", x, weight, bias, residual);
  const LinearSizes sizes = linear_sizes("linear", x, weight, bias, residual);
  const Index rows = sizes.rows, in = sizes.in, out = sizes.out;
  const LinearProducts<T> products(tape, weight);
  const Matrix<const T> mx = x.matrix(), mr = residual ? residual.matrix() : Matrix<const T>{};
  return tape.record(
      {"linear", linear_cost(rows, in, out, static_cast<bool>(bias), static_cast<bool>(residual), tape.wanted(x))},
      sizes.y, {x, weight, bias, residual},
      [=](T* y) { products.forward(mx, bias ? bias.data() : nullptr, mr, Matrix<T>(y, rows, out)); },
      [=, &tape](const Adjoint<T>& dy) {
        bias_backward(tape, bias, dy.matrix());
        products.weight_gradient(mx, dy.matrix(), tape.target(weight));
        if (const auto dx = tape.target(x)) products.input_gradient(dy.matrix(), dx.update, dx.matrix(rows, in));
        if (residual) dy.give_to(residual);
      });
}

#define INSTANTIATE(T) template Var<T> linear(Var<T>, Var<T>, Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
