// The inputs of an attention layer of a running model, for maps, spectra and residuals.
#pragma once

#include "heed/attention/mechanism.h"

#include <functional>
#include <string>
#include <vector>

namespace heed {

/// Inputs of an attention layer's mechanism for some examples. Points into the pass that computed them.
template <class T>
struct AttentionSite {
  const std::string& layer;  ///< prefix of its tensors' names, such as "blocks.0.attn"
  const Mechanism& mechanism;
  std::vector<View<const T>> parameters;  ///< of the mechanism
  std::vector<AttentionInput<T>> inputs;  ///< one for each example, with these parameters
};

/// Called with the attention layers of a model, in the order in which they run.
template <class T>
using AttentionVisitor = std::function<void(const AttentionSite<T>&)>;

/// Returns the attention map of each example and head: [B, map_shape()]. Requires a mechanism with a map. Throws Error
/// if maps differ in size, as those of sequences of different lengths do. For float and double.
template <class T>
Tensor<T> attention_maps(const AttentionSite<T>& site);

}  // namespace heed
