// Images as sequences of their channel values.
#pragma once

#include "heed/config/data.h"
#include "heed/data/images/image.h"

#include <vector>

namespace heed {

/// Returns the image's tokens after these steps of data.grey, data.side and data.levels, in this order:
///   grey     floor((0.2989 R + 0.587 G + 0.114 B) 255.5 / 255), in double
///   side     floor(mean + 1/2) over square cells
///   shift    `shift` is added to every value, and the sum is clipped to 0..255
///   levels   floor(x levels / 256)
/// Tokens are ordered row by row, pixel by pixel, and within a pixel R, G, B. Throws Error unless the image is
/// square and data.side divides its side.
std::vector<int> pixel_tokens(const Image& image, const DataConfig& data, int shift = 0);

/// Returns the channels, height and width that pixel_tokens() gives an image of this size.
ImageSize token_image(const ImageSize& size, const DataConfig& data);

/// Returns the image that the tokens describe; each level becomes the middle of its range of bytes.
Image image_of_tokens(const std::vector<int>& tokens, const ImageSize& size, Index levels);

}  // namespace heed
