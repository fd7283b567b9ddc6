// Inputs of a running model's attention layers, for maps, spectra and residuals.
#pragma once

#include "heed/attention/mechanism.h"

#include <functional>
#include <string>
#include <vector>

namespace heed {

/// Inputs of an attention layer's mechanism for some examples. Refers to tensors of the pass that computed them.
template <class T>
struct AttentionSite {
  const std::string& layer;  ///< prefix of the layer's tensor names, such as "blocks.0.attn"
  const Mechanism& mechanism;
  std::vector<View<const T>> parameters;  ///< mechanism parameters
  std::vector<AttentionInput<T>> inputs;  ///< one per example, with these parameters
};

/// Callback for the attention layers of a model, in execution order.
template <class T>
using AttentionVisitor = std::function<void(const AttentionSite<T>&)>;

/// Returns the attention map of each example and head: [B, map_shape()]. Requires a mechanism with a map. Throws Error
/// if maps differ in size, for example for sequences of different lengths. For float and double.
template <class T>
Tensor<T> attention_maps(const AttentionSite<T>& site);

}  // namespace heed
