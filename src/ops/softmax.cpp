#include "heed/ops/softmax.h"

#include "heed/cost/for_each_number.h"
#include "heed/kernels/rows/rows.h"
#include "heed/kernels/rows/softmax.h"

namespace heed {

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

#define INSTANTIATE(T) template Var<T> softmax(Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
