// AFT-conv: position biases that depend on the relative place of query and key on the image's grid only.
//
// Per head: q, v [N, d], k [N, 1], w [s, s] (one number per place in the window around a query; [s] with dims=1),
// gain and bias, a number each.
//
//   w'   = gain (w - mean w) / sqrt(mean (w - mean w)^2 + 1e-5) + bias                      Eq. 8
//   out  = sigma(q) (sum_s f e^k[s] v[s]) / (sum_s f e^k[s])                                Eq. 6
//          f = exp(w'[place of s seen from t]) in the window around t, 1 outside (0 with `masked`)
//
// Differs: Eq. 6 writes K for exp(K) in the denominator, and sums (exp(w') - 1) over the window and 1 over the whole
// image, which cancels where w' < 0; here the two parts are disjoint (kernels/grids/neighbourhood.h). Eq. 8 prints no
// epsilon.
//
// Sparser variants (Appendix) and w' itself: aft_conv_bias.h. Forward and backward: aft_conv.cpp.
#pragma once

#include "conv_bias.h"

#include "heed/attention/mechanism_base.h"
#include "heed/kernels/grids/neighbourhood.h"

#include <limits>

namespace heed {

struct AftConv {
  Index size = 3, dims = 2;
  bool masked = false, query = true;
  AftConvBias biases;

  // Prepared: the biases of all heads.
  template <class T>
  using Bias = AftConvBias::Memory<T>;
  template <class T>
  Bias<T> prepared(const AttentionShape& s, Carver<T>& carve) const {
    return biases.memory(s.heads, carve);
  }

  // Saved, head by head: scale and mass of the sums of each query, which make the weights again, and y for dq and dk.
  template <class T>
  struct Saved {
    Heads<T> scale, mass, y;
  };
  template <class T>
  Saved<T> saved(const AttentionShape& s, Carver<T>& carve) const {
    return {carve_heads(s.heads, s.queries, 1, carve), carve_heads(s.heads, s.queries, 1, carve),
            carve_heads(s.heads, s.queries, s.value_width, carve)};
  }

  // What the sums take; for the gradients of a head its sums as queries, and as keys.
  template <class T>
  struct Scratch {
    kernels::NeighbourhoodScratch<T> sums;
    kernels::ExpSums<T> queries, keys;
  };
  template <class T>
  Scratch<T> scratch(const AttentionShape& s, Carver<T>& carve) const {
    const auto sums = [&] { return kernels::carve_exp_sums(s.queries, 1, s.value_width, carve); };
    return {kernels::carve_neighbourhood(grid(s), s.value_width, carve), sums(), sums()};
  }

  template <class T>
  void run_prepare(const AttentionPreparation<T>& of, const Bias<T>& bias) const {
    // 1. w' of all heads
    for (Index h = 0; h < of.shape.heads; ++h) biases.make(of, h, bias);
  }
  template <class T>
  void run_prepare_backward(const AttentionPreparation<T>& of, const Bias<T>& bias, const Bias<T>& dbias,
                            std::span<const View<T>> gradient) const {
    for (Index h = 0; h < of.shape.heads; ++h) biases.make_backward<T>(of, h, bias, dbias.used[h], gradient);
  }

  template <class T>
  void run_forward(const AttentionInput<T>& in, Heads<T> outs, const Bias<const T>& bias, const Saved<T>& saved,
                   const Scratch<T>& scratch) const;
  template <class T>
  void run_backward(const AttentionInput<T>& in, Heads<const T> douts, const Bias<const T>& bias, const Saved<T>& saved,
                    const Scratch<T>& scratch, const AttentionGradient<T>& gradient, const Bias<T>& dbias) const;

  Cost cost(const AttentionShape& s) const;

  /// The biases of all pairs, [heads, N, N]: -inf where a query does not see a key.
  Tensor<float> biases_of_pairs(const AttentionShape& s, const Bias<const float>& bias) const {
    const kernels::Neighbourhood cells = grid(s);
    const Index N = cells.cells();
    Tensor<float> pairs(Shape{s.heads, N, N});
    std::fill(pairs.begin(), pairs.end(), masked ? -std::numeric_limits<float>::infinity() : 0);
    for (Index h = 0; h < s.heads; ++h)
      for (Index t = 0; t < N; ++t) {
        const Index y = t / cells.width, x = t % cells.width;
        const kernels::Neighbourhood::Window near = cells.around(y, x);
        for (Index row = near.top; row < near.bottom; ++row)
          for (Index column = near.left; column < near.right; ++column)
            pairs[(h * N + t) * N + row * cells.width + column] = bias.used(h, cells.place(row - y, column - x));
      }
    return pairs;
  }

  /// The biases of each head as they lie in the window, [heads, s, s] or [heads, 1, s].
  Tensor<float> windows(const AttentionShape& s, const Bias<const float>& bias) const {
    Tensor<float> windows(Shape{s.heads, dims == 2 ? size : 1, size});
    for (Index h = 0; h < s.heads; ++h) std::copy_n(bias.used[h], biases.places, windows.data() + h * biases.places);
    return windows;
  }

 private:
  kernels::Neighbourhood grid(const AttentionShape& s) const {
    if (dims == 1) return {1, s.queries, 0, size / 2, !masked};
    return {s.grid_height, s.grid_width, size / 2, size / 2, !masked};
  }
};

}  // namespace heed
