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

template <class T>
Var<T> matmul(Var<T> a, Var<T> b) {
  Tape<T>& tape = tape_of("matmul", a, b);
  const Shape &as = a.shape(), &bs = b.shape();
  const int rank = as.rank();
  require(rank >= 2 && bs.rank() == rank && std::equal(as.begin(), as.end() - 2, bs.begin()) && as[-1] == bs[-2],
          "[matmul] a has shape {}, b has {}; expected [..., m, k] and [..., k, n]", as, bs);
  const Index m = as[-2], k = as[-1], n = bs[-1], count = m * k == 0 ? 0 : as.elements() / (m * k);
  Index sizes[Shape::max_rank];
  std::copy(as.begin(), as.end(), sizes);
  sizes[rank - 1] = n;

  Cost cost;
  cost.forward = count * product_counts(m, n, k);
  cost.backward = count * (product_counts(m, k, n) + product_counts(k, n, m));
  cost.forward_contractions = count * product_contractions(m, n, k);
  cost.backward_contractions = 2 * cost.forward_contractions;
  const auto matrix_at = [](auto* data, Index i, Index rows, Index columns) {
    return Matrix(data + i * rows * columns, rows, columns);
  };
  return tape.record(
      {"matmul", cost}, Shape(sizes, rank), {a, b},
      [=](T* y) {
        parallel_for(count, [=](Index i) {
          kernels::gemm(matrix_at(a.data(), i, m, k), matrix_at(b.data(), i, k, n), matrix_at(y, i, m, n));
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        if (const auto da = tape.target(a))
          parallel_for(count, [=, pdy = dy.data()](Index i) {
            kernels::gemm(matrix_at(pdy, i, m, n), transposed(matrix_at(b.data(), i, k, n)), da.update,
                          matrix_at(da.data, i, m, k));
          });
        if (const auto db = tape.target(b))
          parallel_for(count, [=, pdy = dy.data()](Index i) {
            kernels::gemm(transposed(matrix_at(a.data(), i, m, k)), matrix_at(pdy, i, m, n), db.update,
                          matrix_at(db.data, i, k, n));
          });
      });
}

#define INSTANTIATE(T)                                    \
  template Var<T> linear(Var<T>, Var<T>, Var<T>, Var<T>); \
  template Var<T> matmul(Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
