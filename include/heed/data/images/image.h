// 8-bit images: loading from PNG and JPEG files, change of size and of channels.
#pragma once

#include "heed/base/tensor.h"

#include <cstdint>
#include <string>
#include <vector>

namespace heed {

/// Size of an image: channels are 1 (grey) or 3 (red, green, blue).
struct ImageSize {
  Index channels = 0, height = 0, width = 0;

  Index pixels() const { return height * width; }
  Index elements() const { return channels * height * width; }
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

/// "3x32x32": channels, height, width.
std::string to_string(const ImageSize& size);

/// An image, planar: pixels [channels, height, width].
struct Image {
  ImageSize size;
  std::vector<std::uint8_t> pixels;
};

/// Limits of an image file: pixels along a side, and altogether; the latter only as far as
/// $HEED_READ_LIMIT bytes, 512 MiB without it, suffice for 16 bytes per pixel.
inline constexpr Index max_image_side = 16'384, max_image_pixels = 1 << 26;

/// Size of the image in a PNG or JPEG file, read from its header alone. An alpha channel does not count. Throws Error
/// if the file is neither or the image is larger than the limits above.
ImageSize image_file_size(const std::string& path);

/// Loads a PNG or JPEG file; grey stays grey, palettes become RGB, 16 bits become 8. Transparent pixels show a
/// background of the grey level `background`, white as in image viewers. Throws Error.
Image load_image(const std::string& path, std::uint8_t background = 255);

/// Returns whether the file's name ends in .png, .jpg or .jpeg, in letters of either case.
bool has_image_name(const std::string& path);

/// The image at another size, with another number of channels. Aspect is not kept. Resampling is linear
/// interpolation where the image grows and a triangle-weighted mean over all covered pixels where it shrinks
/// (so that nothing aliases); grey is 0.299 R + 0.587 G + 0.114 B, RGB from grey repeats it.
Image convert(Image image, ImageSize target);

}  // namespace heed
