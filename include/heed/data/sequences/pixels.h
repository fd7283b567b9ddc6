// Images as sequences of their sub-pixels.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"

#include <vector>

namespace heed {

/// An image as data.grey, data.side and data.levels say, in this order:
///   grey     floor((0.2989 R + 0.587 G + 0.114 B) 255.5 / 255), in double
///   side     floor(mean + 1/2) of square cells; side divides the original's
///   shift    is added to all, and the result clipped to 0..255
///   levels   floor(x levels / 256)
/// pixel by pixel, row by row, and within a pixel R, G, B. Throws Error if `side` does not divide the image.
std::vector<int> pixel_tokens(const Image& image, const DataConfig& data, int shift = 0);

/// Returns the size of an image after pixel_tokens(): channels, height and width.
ImageSize token_image(const ImageSize& size, const DataConfig& data);

/// The image of some tokens, each level as the middle of the bytes that it stands for.
Image image_of_tokens(const std::vector<int>& tokens, const ImageSize& size, Index levels);

}  // namespace heed
