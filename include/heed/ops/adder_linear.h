// The linear layer of adder networks: l1 distances in place of products. Chen et al., "AdderNet: do we really need
// multiplications in deep learning?", CVPR 2020, arXiv:1912.13200; in transformers Shu et al., "Adder attention for
// vision transformer", NeurIPS 2021, Eq. 4-6.
#pragma once

#include "heed/kernels/l1_distance.h"
#include "heed/ops/linear_parts.h"

namespace heed {

/// What a backward pass puts in the place of sign, the derivative proper, with which training hardly gets anywhere.
/// weight_scale is the training step's business (adaptive_scale below).
struct AdderLinearOptions {
  enum class WeightScale { none, adaptive };

  DistanceGradient input_grad = DistanceGradient::hardtanh;
  DistanceGradient weight_grad = DistanceGradient::full;
  WeightScale weight_scale = WeightScale::none;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("input_grad", input_grad, {"sign", "hardtanh"}, "derivative of |W - x| by x: sign or clamp(W - x, -1, 1)");
    visit("weight_grad", weight_grad, {"sign", "hardtanh", "full"}, "derivative by W: the same, or W - x itself");
    visit("weight_scale", weight_scale, {"none", "adaptive"}, "adaptive: 0.2 sqrt(K) / |dW| dW for K weights");
  }
};

/// Cost of an adder layer over `rows` rows.
inline Cost adder_linear_cost(Index rows, Index in, Index out, bool bias, const AdderLinearOptions& options) {
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

/// y[n,o] = -sum_i |x[n,i] - W[o,i]| + b[o] over the last axis: x [..., I], W [O, I], bias b [O] or left out,
/// y [..., O].
///
///   dx[n,i] += sum_o dy[n,o] f(W[o,i] - x[n,i]),  dW[o,i] += -sum_n dy[n,o] f(W[o,i] - x[n,i]),  db += sum_n dy
///
/// with f = input_grad for x and weight_grad for W (kernels/l1_distance.h).
template <class T>
Var<T> adder_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, const AdderLinearOptions& options = {}) {
  Tape<T>& tape = tape_of("adder_linear", x, weight, bias);
  const detail::LinearSizes sizes = detail::linear_sizes("adder_linear", x, weight, bias);
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
        detail::bias_backward(tape, bias, dy);
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

/// AdderNet's adaptive learning rate (arXiv:1912.13200, Section 3.3) for the gradient of n weights:
///   dW *= 0.2 sqrt(n) / max(|dW|_2, 1e-12).
/// Distances grow with the width of a layer, and with them the differences between layers' gradients; this gives
/// every layer's the same root mean square, 0.2. The norm is summed in double.
template <class T>
void adaptive_scale(Index n, T* dw) {
  double squares = 0;
  for (Index i = 0; i < n; ++i) squares += static_cast<double>(dw[i]) * static_cast<double>(dw[i]);
  const T factor(0.2 * std::sqrt(static_cast<double>(n)) / std::max(std::sqrt(squares), 1e-12));
  for (Index i = 0; i < n; ++i) dw[i] *= factor;
}

}  // namespace heed
