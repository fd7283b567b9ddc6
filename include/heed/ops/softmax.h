// softmax over the last axis.
#pragma once

#include "heed/kernels/rows.h"
#include "heed/kernels/softmax.h"
#include "heed/ops/rows.h"

namespace heed {

/// y = exp(x - max) / sum exp(x - max) over the last axis.
///
///   dx = y (dy - sum y dy)
template <class T>
Var<T> softmax(Var<T> x) {
  Tape<T>& tape = tape_of("softmax", x);
  const Index rows = x.shape().rows(), n = x.shape().row_size();
  Cost cost;
  cost.forward = kernels::softmax_counts(rows, rows * n);
  cost.backward = kernels::row_dots_counts(rows, n) + rows * n * Counts{.mul = 1, .add = 1};
  return tape.record(
      {"softmax", cost}, x.shape(), {x},
      [=](T* y) {
        std::copy(x.data(), x.data() + rows * n, y);
        kernels::softmax_rows(Matrix<T>(y, rows, n));
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        const Matrix<const T> y(dy.value(), rows, n), mdy = dy.matrix();
        const Matrix<T> mdx = dx.matrix(rows, n);
        T* const sums = tape.memory(rows);
        kernels::row_dots(y, mdy, sums);
        for (Index r = 0; r < rows; ++r)
          for (Index i = 0; i < n; ++i) write(dx.update, mdx(r, i), y(r, i) * (mdy(r, i) - sums[r]));
      });
}

}  // namespace heed
