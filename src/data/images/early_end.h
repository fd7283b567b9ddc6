// Image files that were cut short.
#pragma once

#include "heed/data/images/image.h"

namespace heed::data {

/// Returns true if a PNG, BMP or GIF file, whose header gives this size, ends before its pixels do: within a chunk of a
/// PNG, in the rows of a BMP, in the first frame of a GIF. stb_image takes what is missing for zeros, or allocates a
/// PNG's chunk before it reads it. False for JPEG, whose missing end stb_image reports.
bool ends_early(const std::vector<std::uint8_t>& bytes, const ImageSize& size);

}  // namespace heed::data
