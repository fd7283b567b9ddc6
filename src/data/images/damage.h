// Damage to image files that stb_image does not report.
#pragma once

#include "heed/data/images/image.h"

namespace heed::data {

/// Returns the reason why a PNG, BMP or GIF file, whose header gives this size, is damaged; empty if it is not. The
/// file ends within a chunk of a PNG, which stb_image allocates before it reads it, or within the rows of a BMP or the
/// first frame of a GIF, where stb_image reads zeros; or the checksum of a PNG's header, palette or pixels is wrong.
std::string damage(const std::vector<std::uint8_t>& bytes, const ImageSize& size);

}  // namespace heed::data
