// The linear layer of adder networks: l1 distances instead of products. Chen et al., "AdderNet: do we really need
// multiplications in deep learning?", CVPR 2020, arXiv:1912.13200; in transformers Shu et al., "Adder attention for
// vision transformer", NeurIPS 2021, Eq. 4-6.
#pragma once

#include "heed/kernels/distances/l1_distance.h"
#include "heed/tape/tape.h"

namespace heed {

/// Surrogate gradients. The exact derivative, sign, is independent of the distance between W and x: AdderNet did not
/// train well with it, and transformers lose up to 1.4 points of accuracy (Shu et al., Table 3; experiments/claims.md).
/// weight_scale is applied by the training step (adaptive_scale below).
struct AdderLinearOptions {
  enum class WeightScale { none, adaptive };

  DistanceGradient input_grad = DistanceGradient::hardtanh;
  DistanceGradient weight_grad = DistanceGradient::full;
  WeightScale weight_scale = WeightScale::none;

  template <class Visitor>
  void options(Visitor& visit) {
    visit("input_grad", input_grad, {"sign", "hardtanh"},
          "derivative of |W - x| with respect to x: sign or clamp(W - x, -1, 1)");
    visit("weight_grad", weight_grad, {"sign", "hardtanh", "full"},
          "derivative with respect to W: the same, or W - x itself");
    visit("weight_scale", weight_scale, {"none", "adaptive"}, "adaptive: 0.2 sqrt(K) / |dW| dW for K weights");
  }
};

/// Computes y[n,o] = -sum_i |x[n,i] - W[o,i]| + b[o] over the last axis: x [..., I], W [O, I], bias b [O] optional,
/// y [..., O].
///
///   dx[n,i] += sum_o dy[n,o] f(W[o,i] - x[n,i]),  dW[o,i] += -sum_n dy[n,o] f(W[o,i] - x[n,i]),  db += sum_n dy
///
/// with f = input_grad for x and weight_grad for W (kernels/distances/l1_distance.h).
template <class T>
Var<T> adder_linear(Var<T> x, Var<T> weight, Var<T> bias = {}, const AdderLinearOptions& options = {});

/// Scales the gradient of n weights by AdderNet's adaptive learning rate (arXiv:1912.13200, Section 3.3):
///   dW *= 0.2 sqrt(n) / max(|dW|_2, 1e-12).
/// Gradients of l1 distances grow with the layer's width; after scaling, every layer's gradient has the root mean
/// square 0.2. The norm is accumulated in double.
template <class T>
void adaptive_scale(Index n, T* dw);

}  // namespace heed
