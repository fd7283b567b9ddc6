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

namespace detail {

/// What a gradient through `terms` terms for each of `elements` elements, `rows` rows of them, costs.
inline Counts negative_l1_gradient_counts(DistanceGradient gradient, Index rows, Index width, Index terms) {
  const Index elements = rows * width;
  switch (gradient) {
    case DistanceGradient::sign:
      return {.add = elements * (2 * terms - 1), .cmp = 2 * elements * terms};
    case DistanceGradient::hardtanh:
      return {.mul = elements * terms, .add = elements * (2 * terms - 1), .cmp = 2 * elements * terms};
    case DistanceGradient::full:
      return {.mul = elements * (terms + 1), .add = elements * terms + rows * (terms - 1)};
  }
  HEED_ASSERT(false);
}

/// The same in the papers' convention, which counts a difference, a product and a sum per term.
inline Counts negative_l1_gradient_contractions(DistanceGradient gradient, Index terms) {
  return {.mul = gradient == DistanceGradient::sign ? 0 : terms, .add = 2 * terms};
}

}  // namespace detail

/// Cost of an adder layer over `rows` rows.
inline Cost adder_linear_cost(Index rows, Index in, Index out, bool bias, const AdderLinearOptions& options) {
  const Index terms = rows * in * out;
  Cost cost;
  cost.forward = {.add = 2 * terms - rows * out + (bias ? rows * out : 0), .cmp = terms};
  cost.backward = detail::negative_l1_gradient_counts(options.input_grad, rows, in, out) +
                  detail::negative_l1_gradient_counts(options.weight_grad, out, in, rows) +
                  Counts{.add = bias ? (rows - 1) * out : 0};
  cost.forward_contractions = {.add = 2 * terms};
  cost.backward_contractions = detail::negative_l1_gradient_contractions(options.input_grad, terms) +
                               detail::negative_l1_gradient_contractions(options.weight_grad, terms);
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
  const auto [rows, in, out, shape] = detail::linear_sizes("adder_linear", x, weight, bias);

  return tape.record(
      {"adder_linear", adder_linear_cost(rows, in, out, static_cast<bool>(bias), options)}, shape, {x, weight, bias},
      [=](T* y) {
        const T *px = x.data(), *pw = weight.data(), *pb = bias ? bias.data() : nullptr;
        for_row_ranges(rows, in * out / 8, [=](Index begin, Index end) {
          kernels::negative_l1_by_maxima(end - begin, out, in, px + begin * in, in, pw, in, pb, y + begin * out, out);
        });
      },
      [=, &tape](const Adjoint<T>& dy) {
        const T *px = x.data(), *pw = weight.data(), *pdy = dy.data();
        detail::bias_backward(tape, bias, dy.matrix());
        if (const auto dw = tape.target(weight))
          for_product_ranges<T>(out, in * rows / 8, [=](Index begin, Index end) {
            kernels::negative_l1_gradient(options.weight_grad, Transpose::yes, end - begin, rows, in, pw + begin * in,
                                          in, px, in, pdy + begin, out, dw.update, dw.data + begin * in, in);
          });
        if (const auto dx = tape.target(x))
          for_product_ranges<T>(rows, in * out / 8, [=](Index begin, Index end) {
            kernels::negative_l1_gradient(options.input_grad, Transpose::no, end - begin, out, in, px + begin * in, in,
                                          pw, in, pdy + begin * out, out, dx.update, dx.data + begin * in, in);
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
