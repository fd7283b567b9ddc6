// Writing images to PNG files.
#pragma once

#include "heed/data/images/image.h"

#include <string>

namespace heed {

/// Returns the content of a PNG file of the image, 8 bits per channel.
std::string encode_png(const Image& image);

/// Writes a PNG file atomically. Throws Error if it cannot be written.
void save_png(const std::string& path, const Image& image);

}  // namespace heed
