// Attention maps of a trained model's layers, and patches of one grid in another.
#pragma once

#include "heed/draw/attention_sheet.h"
#include "heed/nn/attention_site.h"

#include <functional>

namespace heed::cli {

/// Returns the patch of a layer's grid that contains the centre of a patch of the first layer's grid.
Patch patch_in(PatchGrid grid, PatchGrid first, Patch patch);

/// Returns the maps of the layer's first image, of shape map_shape().
Tensor<float> map_of(const AttentionSite<float>& site);

/// Calls `f` with the maps of the layer's first image: with [1, N, M] for each head in turn, in the same buffer, if the
/// mechanism computes heads independently and has no parameters and no prepared tensors; otherwise once with all maps.
void for_each_map(const AttentionSite<float>& site, const std::function<void(View<const float>)>& f);

}  // namespace heed::cli
