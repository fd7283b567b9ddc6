// Attention weights of a trained model's layers over the patches of an image.
#pragma once

#include "heed/draw/attention_sheet.h"
#include "heed/nn/attention_site.h"

#include <functional>
#include <optional>

namespace heed::cli {

/// Returns the patch of a layer's grid that contains the centre of a patch of the first layer's grid.
Patch patch_in(PatchGrid grid, PatchGrid first, Patch patch);

/// Returns the maps of the layer's first image, of shape map_shape().
Tensor<float> map_of(const AttentionSite<float>& site);

/// Calls `f` with the maps of the layer's first image: with [1, N, M] for each head in turn, in the same buffer, if
/// the mechanism computes heads independently; otherwise once with all maps.
void for_each_map(const AttentionSite<float>& site, const std::function<void(View<const float>)>& f);

/// Attention maps of a layer for one image, all heads.
class LayerMap {
 public:
  /// Computes the map of the batch's first image. `class_token`: true if the first token is a class token.
  LayerMap(const AttentionSite<float>& site, bool class_token);

  /// Returns true if the layer has maps.
  bool exists() const { return maps_.size() > 0; }
  bool of_channels() const { return of_channels_; }
  bool class_token() const { return class_token_; }

  /// Returns the grid of the layer's queries.
  PatchGrid grid() const { return grid_; }

  /// Returns the weights of all patches for the query whose patch contains the centre of `query`, a patch of `grid`;
  /// without `query`, those of the class token, or the mean over all patches if there is none. Maps over channels are
  /// returned whole; a layer without maps has no weights. Throws Error if a weight is not finite.
  Tensor<float> weights(std::optional<Patch> query, PatchGrid grid) const;

 private:
  Tensor<float> maps_;  ///< [heads, N, M]
  PatchGrid grid_;
  bool of_channels_ = false, class_token_;
};

}  // namespace heed::cli
