// 8-bit images: loading from files, change of size and of channels.
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

/// Limits of an image file: pixels along a side, and altogether; the latter only as far as $HEED_READ_LIMIT bytes, if
/// it is set, suffice for 16 bytes per pixel.
inline constexpr Index max_image_side = 16'384, max_image_pixels = 1 << 27;

/// Size of the image in a PNG, JPEG, BMP or GIF file, read from its header alone. An alpha channel does not count. If
/// `oriented`, it is that of the image turned upright by its EXIF orientation. Throws Error if the file is none of
/// these or the image is larger than the limits above.
ImageSize image_file_size(const std::string& path, bool oriented = true);

/// Loads a PNG, JPEG, BMP or GIF file, of the latter the first frame; grey stays grey, palettes become RGB, 16 bits
/// become 8. Transparent pixels show a background of the grey level `background`, white as in image viewers. If
/// `oriented`, the image is turned upright. Throws Error.
Image load_image(const std::string& path, std::uint8_t background = 255, bool oriented = true);

/// Returns whether the file's name ends as those of image files that are read: .png, .jpg, .jpeg, .jfif, .jpe, .bmp or
/// .gif, in letters of either case.
bool has_image_name(const std::string& path);

/// The image at another size, with another number of channels. Aspect is not kept. Resampling is linear
/// interpolation where the image grows and a triangle-weighted mean over all covered pixels where it shrinks
/// (so that nothing aliases); grey is 0.299 R + 0.587 G + 0.114 B, RGB from grey repeats it.
Image convert(Image image, ImageSize target);

struct DataConfig;

/// Returns the image at the model's size by data.resize: with "crop" the shorter side is brought to that of `target` /
/// crop_fraction, rounded, and the middle is cut out, as torchvision's Resize and CenterCrop do it; otherwise
/// convert(image, target).
Image fitted(Image image, ImageSize target, const DataConfig& data);

}  // namespace heed
