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
  cost.forward = rows * Counts{.add = 2 * n - 1, .div = n, .exp = n, .cmp = n - 1};
  cost.backward = rows * Counts{.mul = 2 * n, .add = 2 * n - 1};
  return tape.record(
      {"softmax", cost}, x.shape(), {x},
      [=](T* y) {
        std::copy(x.data(), x.data() + rows * n, y);
        kernels::softmax_rows(rows, n, n, y, static_cast<T*>(nullptr));
      },
      [=, &tape](const Adjoint<T>& dy) {
        const auto dx = tape.target(x);
        if (!dx) return;
        const T* const y = dy.value();
        T* const sums = tape.memory(rows);
        kernels::row_dots(rows, n, y, n, dy.data(), n, sums);
        for (Index r = 0; r < rows; ++r)
          for (Index i = r * n; i < (r + 1) * n; ++i) write(dx.update, dx.data[i], y[i] * (dy.data()[i] - sums[r]));
      });
}

}  // namespace heed
