// What a teacher without labels teaches: distributions over the outputs of its head, sharpened and centred. Caron et
// al., arXiv:2104.14294v2, Section 3.1.
#pragma once

#include "heed/base/tensor.h"

#include <vector>

namespace heed {

/// What a teacher makes of its logits, and what these do to the centre.
template <class T>
struct Teaching {
  Tensor<T> q{};                    ///< [B, 2, K] as the logits, or any other shape whose last axis is K
  Tensor<T> mean{};                 ///< [K], of the logits over all rows
  double entropy = 0;               ///< mean over rows of -q . log q
  std::vector<double> entropies{};  ///< of rows
};

/// Takes the memory of `earlier`, a teaching of as many logits, if there is one.
template <class T>
Teaching<T> teach(View<const T> logits, View<const T> center, double temperature, Teaching<T> earlier = {});

/// center := momentum center + (1 - momentum) mean
template <class T>
void move_center(View<T> center, View<const T> mean, double momentum);

}  // namespace heed
