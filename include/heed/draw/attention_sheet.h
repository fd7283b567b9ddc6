// Attention maps, and what else there is to look at in attention layers, over the image that they look at, or by
// themselves where they are not about its patches, as one picture: a row for each block of each image, a column for
// each head.
#pragma once

#include "heed/data/images/image.h"
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

/// A row of the sheet, for one block: a number for each patch, or matrices by themselves.
struct SheetRow {
  std::vector<std::string> label;  ///< lines beside it, of which the first stands out
  Tensor<float> weights{};         ///< [heads, rows, columns]; empty if there is nothing to draw
  bool over_image = true;          ///< else the image has no part in them
  Image image{};                   ///< drawn before them, in a sheet without one of its own
};

struct AttentionSheet {
  std::string title, subtitle;
  Image image;     ///< the model's input; empty if each row has a separate image of the same size
  PatchGrid grid;  ///< grid of `query`, that of the first block
  std::vector<SheetRow> rows;
  std::optional<Patch> query{};        ///< marked in the images
  std::vector<std::string> columns{};  ///< headings of the columns
  std::string kind = "map";            ///< the name of what a row without weights lacks
};

/// The weights of each patch as a key, [heads, rows, columns] of the keys' grid, from the map [heads, N, M] of one
/// image, whose N queries are tokens before the grid (a class token, registers), then the patches of the grid. Its M
/// keys are the same, or as many as a coarser grid of the same proportions has. The query is, if given, that patch,
/// else token `token` of those before the grid; if there is none, or `token` is -1, the mean over the patches. Throws
/// Error if a weight is not finite or the keys are no such grid.
Tensor<float> patch_weights(View<const float> map, PatchGrid grid, std::optional<Patch> query, Index token = 0);

/// The numbers of all tokens [heads, N], the first `prefix` before the grid, as weights of the patches of the grid, or
/// of a coarser one of the same proportions: [heads, rows, columns]. Throws Error as patch_weights() does.
Tensor<float> token_weights(View<const float> numbers, PatchGrid grid, Index prefix);

/// The mean over the first axis, [1, rows, columns] of [heads, rows, columns].
Tensor<float> mean_of_heads(View<const float> weights);

/// Matrices [heads, rows, columns], to be drawn as they are. Throws Error if a number is not finite.
Tensor<float> matrix_weights(View<const float> matrices);

/// The colours of weights in so many equal steps, "rrggbb": from 0 to the largest weight; or, `with_negative`, from
/// minus to plus the largest magnitude.
std::vector<std::string> weight_colours(std::size_t steps, bool with_negative);

/// Draws a sheet. A map's colours run from 0 to its largest weight, which stands below it; if any weight of the sheet
/// is negative, from minus to plus the largest magnitude.
Image draw_attention(const AttentionSheet& sheet);

}  // namespace heed
