// What layers that map the last axis have in common: linear and adder_linear.
#pragma once

#include "heed/kernels/rows.h"
#include "heed/ops/rows.h"

namespace heed::detail {

/// Sizes of y [..., out] for x [..., in], weight [out, in], and bias [out] and residual [..., out] or none.
struct LinearSizes {
  Index rows, in, out;
  Shape y;
};

/// Throws Error if they do not fit each other.
template <class T>
LinearSizes linear_sizes(const char* operation, Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual = {}) {
  require(weight.shape().rank() == 2 && x.shape().rank() >= 1,
          "[{}] x has shape {}, weight {}; expected [..., inputs] and [outputs, inputs]", operation, x.shape(),
          weight.shape());
  const Index rows = x.shape().rows(), in = x.shape().row_size(), out = weight.shape()[0];
  require(weight.shape()[1] == in, "[{}] x has {} channels, weight {} takes {}; they must match", operation, in,
          weight.shape(), weight.shape()[1]);
  require(!bias || bias.shape() == Shape{out}, "[{}] bias has shape {}; expected [{}]", operation,
          bias ? bias.shape() : Shape{}, out);
  Index sizes[Shape::max_rank];
  std::copy(x.shape().begin(), x.shape().end(), sizes);
  sizes[x.shape().rank() - 1] = out;
  const Shape y(sizes, x.shape().rank());
  require(!residual || residual.shape() == y, "[{}] the residual has shape {}; expected {}", operation,
          residual ? residual.shape() : Shape{}, y);
  return {rows, in, out, y};
}

/// db += sum over rows of dy [rows, out], if the bias wants a gradient.
template <class T>
void bias_backward(Tape<T>& tape, Var<T> bias, Matrix<const T> dy) {
  if (const auto db = tape.target(bias))
    sum_over_row_ranges(tape, dy.rows, dy.columns, dy.columns, db.update, db.data,
                        [=](Index begin, Index end, Update update, T* sum) {
                          kernels::column_sums(dy.middle_rows(begin, end - begin), update, sum);
                        });
}

}  // namespace heed::detail
