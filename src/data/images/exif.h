// EXIF orientation of image files.
#pragma once

#include "heed/data/images/image.h"

#include <optional>

namespace heed::data {

/// Returns the EXIF orientation, 1 to 8, of a JPEG or PNG file that starts with `bytes`: 1 (upright) if the file has
/// none, and nothing if `bytes` end before the metadata do. In a PNG, the metadata may follow the pixels.
std::optional<int> exif_orientation(const std::vector<std::uint8_t>& bytes);

/// Returns true if height and width are exchanged when an image of this orientation is turned upright.
inline bool swaps_sides(int orientation) { return orientation >= 5; }

/// Returns an image of this orientation, turned upright.
Image upright(Image image, int orientation);

}  // namespace heed::data
