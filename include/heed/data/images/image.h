// 8-bit images: loading from files, resizing, channel conversion.
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

/// Returns, for example, "3x32x32": channels, height, width.
std::string to_string(const ImageSize& size);

/// An image, planar: pixels [channels, height, width].
struct Image {
  ImageSize size;
  std::vector<std::uint8_t> pixels;
};

/// Maximum side and number of pixels of an image file. If $HEED_READ_LIMIT is set to a number of bytes, an image also
/// has at most a sixteenth as many pixels.
inline constexpr Index max_image_side = 16'384, max_image_pixels = 1 << 27;

/// Returns the size of the image in a PNG, JPEG, BMP or GIF file, without decoding it. An alpha channel is not counted.
/// If `oriented`, returns the size after rotation by the EXIF orientation. Throws Error for other files and for images
/// above the limits.
ImageSize image_file_size(const std::string& path, bool oriented = true);

/// Loads a PNG, JPEG or BMP file or the first frame of a GIF file; grey stays grey, palettes become RGB, 16 bits become
/// 8. Transparent pixels are blended with the grey level `background`; the default is white, as in image viewers. If
/// `oriented`, the image is turned upright by its EXIF orientation. Throws Error as image_file_size() does, and for
/// damaged files.
Image load_image(const std::string& path, std::uint8_t background = 255, bool oriented = true);

/// The endings of image files, as printed.
inline constexpr const char* image_endings = ".png, .jpg, .jpeg, .jfif, .jpe, .bmp, .gif";

/// Returns true if the name ends in one of image_endings, in lower or upper case.
bool has_image_name(const std::string& path);

/// Returns the image converted to the size and the channels of `target`, without preserving the aspect ratio.
/// Resampling is linear interpolation where the image grows and, to avoid aliasing, a triangle-weighted mean over all
/// covered pixels where it shrinks. Grey is 0.299 R + 0.587 G + 0.114 B; RGB from grey repeats the grey value.
Image convert(Image image, ImageSize target);

struct DataConfig;

/// Returns the image resized to `target`, the model's input size, by the method data.resize. "crop" preserves the
/// aspect ratio: it resizes the image to cover `target` / crop_fraction, rounded, and crops the centre, for a square
/// `target` as torchvision's Resize and CenterCrop do; all other methods are convert(image, target).
Image fitted(Image image, ImageSize target, const DataConfig& data);

}  // namespace heed
