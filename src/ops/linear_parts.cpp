#include "linear_parts.h"

#include "heed/cost/for_each_number.h"

namespace heed {

template <class T>
LinearSizes linear_sizes(const char* operation, Var<T> x, Var<T> weight, Var<T> bias, Var<T> residual) {
  require(weight.shape().rank() == 2 && x.shape().rank() >= 1,
          "[{}] x has shape {}, weight {}; expected [..., inputs] and [outputs, inputs]", operation, x.shape(),
          weight.shape());
  const Index rows = x.shape().rows(), in = x.shape().row_size(), out = weight.shape()[0];
  require(weight.shape()[1] == in, "[{}] x has {} channels, weight {} expects {}; they must match", operation, in,
          weight.shape(), weight.shape()[1]);
  require_shape(operation, "bias", bias, {out});
  Index sizes[Shape::max_rank];
  std::copy(x.shape().begin(), x.shape().end(), sizes);
  sizes[x.shape().rank() - 1] = out;
  const Shape y(sizes, x.shape().rank());
  require_shape(operation, "the residual", residual, y);
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
void WeightOperand<T>::add(Matrix<const T> a, Index column, const T* bias, Matrix<const T> addend, Matrix<T> c) const {
  if constexpr (std::is_same_v<T, float> && kernels::packs_weights) {
    if (packed && bias) return kernels::addmm(a, *packed, column, bias, addend, c);
    if (packed && !addend) return kernels::gemm(a, *packed, column, Update::assign, c);
  }
  gemm.add(a, b.middle_columns(column, c.columns), bias, addend, c);
}

template <class T>
void WeightOperand<T>::product(Matrix<const T> a, Update update, Matrix<T> c) const {
  if constexpr (std::is_same_v<T, float> && kernels::packs_weights)
    if (packed) return kernels::gemm(a, *packed, 0, update, c);
  gemm(a, b, update, c);
}

template <class T>
void LinearProducts<T>::forward(Matrix<const T> x, const T* bias, Matrix<const T> residual, Matrix<T> y) const {
  for_product_parts<T>(x.rows, y.columns, x.columns, [=, *this](ProductPart part) {
    const Matrix<const T> from = part.rows_of(x), added = residual ? part.of(residual) : residual;
    const T* const bias_part = bias ? bias + part.column : nullptr;
    forward_.add(from, part.column, bias_part, added, part.of(y));
  });
}

template <class T>
void LinearProducts<T>::input_gradient(Matrix<const T> dy, Update update, Matrix<T> dx) const {
  for_product_ranges<T>(dy.rows, weight_.size() / 8, [=, *this](Index begin, Index end) {
    backward_.product(dy.middle_rows(begin, end - begin), update, dx.middle_rows(begin, end - begin));
  });
}

template <class T>
void LinearProducts<T>::weight_gradient(Matrix<const T> x, Matrix<const T> dy,
                                        const typename Tape<T>::Target& dw) const {
  if (!dw) return;
  const Matrix<T> mdw = dw.matrix(weight_.rows, weight_.columns);
  for_product_ranges<T>(weight_.rows, weight_.columns * x.rows / 8, [=, *this](Index begin, Index end) {
    forward_.gemm(transposed(dy.middle_columns(begin, end - begin)), x, dw.update, mdw.middle_rows(begin, end - begin));
  });
}

#define INSTANTIATE(T)                                                            \
  template struct WeightOperand<T>;                                               \
  template LinearSizes linear_sizes(const char*, Var<T>, Var<T>, Var<T>, Var<T>); \
  template void bias_backward(Tape<T>&, Var<T>, Matrix<const T>);                 \
  template class LinearProducts<T>;
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
