// Attention maps over the image that they look at, or by themselves where they are of channels, as one picture: a row
// for each block, a column for each head.
#pragma once

#include "heed/data/image.h"
#include "heed/base/tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace heed {

/// A patch of the image by its row and column, counted from 0.
struct Patch {
  Index row = 0, column = 0;
};

/// The image cut into patches.
struct PatchGrid {
  Index rows = 0, columns = 0;

  Index patches() const { return rows * columns; }
};

/// What the heads of a block give to each patch, or each channel of a key to each of a query.
struct BlockWeights {
  std::string mechanism;
  Tensor<float> weights{};   ///< [heads, rows, columns]; empty if the mechanism has no map
  bool of_channels = false;  ///< then weights are the maps themselves, and the image has no part in them
};

struct AttentionSheet {
  std::string title, subtitle;
  Image image;     ///< as the model sees it
  PatchGrid grid;  ///< of which `query` is a patch; that of the first block
  std::vector<BlockWeights> blocks;
  std::optional<Patch> query;  ///< marked in the image
};

/// The weights of each patch as a key, [heads, rows, columns] of the keys' grid, from the map [heads, N, M] of one
/// image, whose N queries are the patches of a grid and one more for a class token, which comes first. Its M keys are
/// the same, or as many as a coarser grid of the same proportions has. The query is, if given, that patch, else the
/// class token; without a class token it is the mean over all queries. Throws Error if a weight is not finite or the
/// keys are no such grid.
Tensor<float> patch_weights(View<const float> map, PatchGrid grid, std::optional<Patch> query);

/// The map of channels [heads, d, d] of one image, to be drawn as it is. Throws Error if a weight is not finite.
Tensor<float> channel_weights(View<const float> map);

/// The colours of weights in so many equal steps, "rrggbb": from 0 to the largest weight; or, `with_negative`, from minus
/// to plus the largest magnitude.
std::vector<std::string> weight_colours(std::size_t steps, bool with_negative);

/// Draws a sheet. A map's colours run from 0 to its largest weight, which stands below it; if any weight of the sheet
/// is negative, from minus to plus the largest magnitude.
Image draw_attention(const AttentionSheet& sheet);

}  // namespace heed
