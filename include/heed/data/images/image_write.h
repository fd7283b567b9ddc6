// Images to PNG files.
#pragma once

#include "heed/data/images/image.h"

#include <string>

namespace heed {

/// The content of a PNG file of the image, 8 bits per channel.
std::string encode_png(const Image& image);

/// Writes a PNG file in one step. Throws Error.
void save_png(const std::string& path, const Image& image);

}  // namespace heed
