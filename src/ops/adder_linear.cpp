#include "heed/ops/adder_linear.h"

#include "heed/cost/for_each_number.h"

#include "linear_parts.h"

#include <cmath>

namespace heed {

namespace {

/// Returns the cost of an adder layer over `rows` rows.
Cost adder_linear_cost(Index rows, Index in, Index out, bool bias, const AdderLinearOptions& options) {
  const Index terms = rows * in * out;
  Cost cost;
  cost.forward = kernels::negative_l1_counts(rows * out, in) + Counts{.add = bias ? rows * out : 0};
  cost.backward = kernels::negative_l1_gradient_counts(options.input_grad, rows, out, in) +
                  kernels::negative_l1_gradient_counts(options.weight_grad, out, rows, in) +
                  Counts{.add = bias ? (rows - 1) * out : 0};
  cost.forward_contractions = kernels::negative_l1_contractions(terms);
  cost.backward_contractions = kernels::negative_l1_gradient_contractions(options.input_grad, terms) +
                               kernels::negative_l1_gradient_contractions(options.weight_grad, terms);
  cost.distances = terms;
  return cost;
}

}  // namespace

template <class T>
Var<T> adder_linear(Var<T> x, Var<T> weight, Var<T> bias, const AdderLinearOptions& options) {
  Tape<T>& tape = tape_of("adder_linear", x, weight, bias);
  const LinearSizes sizes = linear_sizes("adder_linear", x, weight, bias);
  const Index rows = sizes.rows, in = sizes.in, out = sizes.out;
  const Matrix<const T> mx = x.matrix(), mw = weight.matrix();
  return tape.record(
      {"adder_linear", adder_linear_cost(rows, in, out, static_cast<bool>(bias), options)}, sizes.y, {x, weight, bias},
      [=](T* data) {
        const T* const b = bias ? bias.data() : nullptr;
        const Matrix<T> y(data, rows, out);
        for_row_ranges(rows, in * out / 8, [=](Index begin, Index end) {
          const Index count = end - begin;
          kernels::negative_l1_by_maxima(mx.middle_rows(begin, count), mw, b, y.middle_rows(begin, count));
        });
      },
      [=, &tape](const Adjoint<T>& adjoint) {
        const Matrix<const T> dy = adjoint.matrix();
        bias_backward(tape, bias, dy);
        if (const auto dw = tape.target(weight))
          for_product_ranges<T>(out, in * rows / 8, [=](Index begin, Index end) {
            const Index count = end - begin;
            kernels::negative_l1_gradient(options.weight_grad, mw.middle_rows(begin, count), mx,
                                          transposed(dy.middle_columns(begin, count)), dw.update,
                                          dw.matrix(out, in).middle_rows(begin, count));
          });
        if (const auto dx = tape.target(x))
          for_product_ranges<T>(rows, in * out / 8, [=](Index begin, Index end) {
            const Index count = end - begin;
            kernels::negative_l1_gradient(options.input_grad, mx.middle_rows(begin, count), mw,
                                          dy.middle_rows(begin, count), dx.update,
                                          dx.matrix(rows, in).middle_rows(begin, count));
          });
      });
}

template <class T>
void adaptive_scale(Index n, T* dw) {
  double squares = 0;
  for (Index i = 0; i < n; ++i) squares += static_cast<double>(dw[i]) * static_cast<double>(dw[i]);
  const T factor(0.2 * std::sqrt(static_cast<double>(n)) / std::max(std::sqrt(squares), 1e-12));
  for (Index i = 0; i < n; ++i) dw[i] *= factor;
}

#define INSTANTIATE(T)                                                             \
  template Var<T> adder_linear(Var<T>, Var<T>, Var<T>, const AdderLinearOptions&); \
  template void adaptive_scale(Index, T*);
HEED_FOR_EACH_NUMBER(INSTANTIATE)

}  // namespace heed
