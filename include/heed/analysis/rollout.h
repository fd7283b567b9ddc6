// Attention rollout: the combined attention map of a stack of layers. Abnar, Zuidema, "Quantifying attention flow in
// transformers", 2020, arXiv:2005.00928, Section 3.
//
//   A = mean over heads of the layer's attention maps                  [N, N]
//   B = A + I, each row divided by the sum of its magnitudes           I for the residual connection
//   R = B of the last layer ... B of the first                         R_ij: weight of input token j in token i
//
// Rows of softmax's maps sum to 1, which gives the paper's B = (A + I) / 2. Magnitudes are summed, since rows with
// negative weights may sum to 0.
#pragma once

#include "heed/base/tensor.h"

namespace heed {

/// Running product R of the maps of an image's layers, averaged over heads and mixed with the identity.
class AttentionRollout {
 public:
  /// Adds the next layer's maps [heads, N, N] of one image. Throws Error if they are not finite or not square, or if N
  /// differs from that of earlier maps.
  void add(View<const float> maps);

  /// Returns R of the layers so far: [1, N, N].
  const Tensor<float>& product() const { return product_; }

 private:
  Tensor<float> product_;
};

}  // namespace heed
