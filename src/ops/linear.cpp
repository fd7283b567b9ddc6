#include "heed/ops/linear.h"

#include "heed/cost/for_each_number.h"

#include "linear_parts.h"

namespace heed {

template <class T>
LinearSizes linear_sizes(const char* operation, Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
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

template <class T>
void bias_backward(Tape<T>& tape, Var<T> bias, Matrix<const T> dy) {
  if (const auto db = tape.target(bias))
    sum_over_row_ranges(tape, dy.rows, dy.columns, dy.columns, db.update, db.data,
                        [=](Index begin, Index end, Update update, T* sum) {
                          kernels::column_sums(dy.middle_rows(begin, end - begin), update, sum);
                        });
}

Cost linear_cost(Index rows, Index in, Index out, bool bias, bool residual, bool input_gradient) {
  Cost cost;
  cost.forward = kernels::addmm_counts(rows, out, in, bias, residual);
  cost.backward = product_counts(out, in, rows);
  if (bias) cost.backward += kernels::column_sums_counts(rows, out);
  if (input_gradient) cost.backward += product_counts(rows, in, out);
  cost.forward_contractions = product_contractions(rows, out, in);
  cost.backward_contractions = (input_gradient ? 2 : 1) * cost.forward_contractions;
  return cost;
}

template <class T>
void LinearProducts<T>::forward(Matrix<const T> x, const T* bias, Matrix<const T> residual, Matrix<T> y) const {
  for_product_parts<T>(x.rows, y.columns, x.columns, [=, *this](ProductPart part) {
    const Matrix<const T> from = part.rows_of(x), added = residual ? part.of(residual) : residual;
    const T* const bias_part = bias ? bias + part.column : nullptr;
    if constexpr (std::is_same_v<T, float> && kernels::packs_weights)
      if (packed_ && bias) return kernels::addmm(from, packed_->forward, part.column, bias_part, added, part.of(y));
    gemm_.add(from, transposed(weight_.middle_rows(part.column, part.columns)), bias_part, added, part.of(y));
  });
}

template <class T>
void LinearProducts<T>::input_gradient(Matrix<const T> dy, Update update, Matrix<T> dx) const {
  for_product_ranges<T>(dy.rows, weight_.size() / 8, [=, *this](Index begin, Index end) {
    const Matrix<const T> from = dy.middle_rows(begin, end - begin);
    const Matrix<T> to = dx.middle_rows(begin, end - begin);
    if constexpr (std::is_same_v<T, float> && kernels::packs_weights)
      if (packed_ && packed_->backward.data()) return kernels::gemm(from, packed_->backward, 0, update, to);
    gemm_(from, weight_, update, to);
  });
}

template <class T>
void LinearProducts<T>::weight_gradient(Matrix<const T> x, Matrix<const T> dy,
                                        const typename Tape<T>::Target& dw) const {
  if (!dw) return;
  const Matrix<T> mdw = dw.matrix(weight_.rows, weight_.columns);
  for_product_ranges<T>(weight_.rows, weight_.columns * x.rows / 8, [=, *this](Index begin, Index end) {
    gemm_(transposed(dy.middle_columns(begin, end - begin)), x, dw.update, mdw.middle_rows(begin, end - begin));
  });
}

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

#define INSTANTIATE(T)                                                            \
  template LinearSizes linear_sizes(const char*, Var<T>, Var<T>, Var<T>, Var<T>); \
  template void bias_backward(Tape<T>&, Var<T>, Matrix<const T>);                 \
  template class LinearProducts<T>;                                               \
  template Var<T> linear(Var<T>, Var<T>, Var<T>, Var<T>);                         \
  template Var<T> matmul(Var<T>, Var<T>);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
