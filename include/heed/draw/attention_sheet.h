// Picture of attention maps and other quantities of attention layers: a row for each block of each image, a column for
// each head. Quantities of patches are drawn over the input image, others as separate matrices.
#pragma once

#include "heed/data/images/image.h"
#include "heed/base/tensor.h"

#include <optional>
#include <string>
#include <vector>

namespace heed {

/// Row and column of a patch, counted from 0.
struct Patch {
  Index row = 0, column = 0;
};

/// Grid of an image's patches.
struct PatchGrid {
  Index rows = 0, columns = 0;

  Index patches() const { return rows * columns; }
};

/// A row of the sheet, for one block: for each head, a value per patch or a matrix.
struct SheetRow {
  std::vector<std::string> label;  ///< lines of text beside the row, the first emphasised
  Tensor<float> weights{};         ///< [heads, rows, columns]; empty if there is nothing to draw
  bool over_image = true;          ///< false: drawn without the image
  Image image{};                   ///< drawn at the start of the row, in a sheet without a common image
  std::vector<Index> columns{};    ///< column of each map, ascending; empty: 0, 1, 2, ...
};

/// Content of a picture of attention maps: a row per block, a column per head.
struct AttentionSheet {
  std::string title, subtitle;
  Image image;     ///< the model's input; empty if each row has its own image, all of one size
  PatchGrid grid;  ///< the first block's grid, in which `query` is a patch
  std::vector<SheetRow> rows;
  std::optional<Patch> query{};        ///< marked in the images; none: no mark
  std::vector<std::string> columns{};  ///< column headings
  std::string kind = "map";            ///< noun in the text "no map" of a row without weights
};

/// Returns the weights of each patch as a key, [heads, rows, columns] of the keys' grid, from the map [heads, N, M] of
/// one image. The N queries are tokens before the grid (class token, registers), then the patches. The M keys are the
/// same tokens before the grid, then the patches of the same grid or of a coarser one with the same proportions. The
/// query is patch `query` if given, otherwise token `token` before the grid; if there is no such token, or `token` is
/// -1, the result is the mean over all patches as queries. Throws Error if a weight is not finite or the keys do not
/// form such a grid.
Tensor<float> patch_weights(View<const float> map, PatchGrid grid, std::optional<Patch> query, Index token = 0);

/// Returns the values of the patches, [heads, rows, columns], from those of all tokens, [heads, N]. The first `prefix`
/// tokens are before the grid. The tokens' grid may be coarser than `grid`, with the same proportions. Throws Error
/// like patch_weights().
Tensor<float> token_weights(View<const float> numbers, PatchGrid grid, Index prefix);

/// Returns the mean of weights [heads, rows, columns] over the heads, [1, rows, columns].
Tensor<float> mean_of_heads(View<const float> weights);

/// Returns a copy of matrices [heads, rows, columns]. Throws Error for non-finite elements.
Tensor<float> matrix_weights(View<const float> matrices);

/// Returns the colours of `steps` equally spaced weights, "rrggbb": from 0 to the largest weight or, if
/// `with_negative`, from minus to plus the largest magnitude.
std::vector<std::string> weight_colours(std::size_t steps, bool with_negative);

/// Draws a sheet. A map's colours range from 0 to its largest weight, printed below the map; if any weight of the sheet
/// is negative, from minus to plus the map's largest magnitude.
Image draw_attention(const AttentionSheet& sheet);

}  // namespace heed
