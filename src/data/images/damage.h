// Damage to image files that stb_image does not report.
#pragma once

#include "heed/data/images/image.h"

namespace heed::data {

/// Returns the damage of a PNG, BMP or GIF file whose header gives this size; empty if there is none. A PNG is damaged
/// if it ends within a chunk, for which stb_image allocates the stated length before reading, or if the checksum of its
/// header, palette or pixels is wrong. A BMP or GIF is damaged if it ends within its rows or its first frame, where
/// stb_image reads zeros.
std::string damage(const std::vector<std::uint8_t>& bytes, const ImageSize& size);

}  // namespace heed::data
