// An attention layer of a model at work, for those who look at it: maps, spectra, residuals.
#pragma once

#include "heed/attention/mechanism.h"

#include <functional>
#include <string>
#include <vector>

namespace heed {

/// What the mechanism of an attention layer is given for some examples. It points into the pass that it comes from.
template <class T>
struct AttentionSite {
  const std::string& layer;  ///< the name of its tensors begins so: "blocks.0.attn"
  const Mechanism& mechanism;
  std::vector<View<const T>> own;         ///< the mechanism's own tensors
  std::vector<AttentionInput<T>> inputs;  ///< one for each example; their parameters are `own`
};

/// Sees the attention layers of a model, in the order in which they run.
template <class T>
using AttentionVisitor = std::function<void(const AttentionSite<T>&)>;

/// The attention map of each example and head: [B, map_shape()]. Only where the mechanism has one. Throws Error where
/// maps differ in size, as those of sequences of different lengths do. For float and double.
template <class T>
Tensor<T> attention_maps(const AttentionSite<T>& site);

}  // namespace heed
