#include "exif.h"

#include "bytes.h"

#include <algorithm>
#include <span>

namespace heed::data {

namespace {

using Bytes = std::span<const std::uint8_t>;

/// Returns the orientation in a TIFF structure: byte order, offset of the first directory, then entries of 12 bytes.
int tiff_orientation(Bytes tiff) {
  constexpr std::size_t orientation = 0x0112, short_type = 3;
  const bool little = begins_with(tiff, 0, "II");
  if (!little && !begins_with(tiff, 0, "MM")) return 1;
  const std::size_t directory = number_at(tiff, 4, 4, little), entries = number_at(tiff, directory, 2, little);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) break;
    if (number_at(tiff, entry, 2, little) != orientation || number_at(tiff, entry + 2, 2, little) != short_type)
      continue;
    const std::size_t value = number_at(tiff, entry + 8, 2, little);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

/// Scans a JPEG's segments (marker and length), up to the image data.
std::optional<int> jpeg_orientation(Bytes bytes) {
  constexpr std::uint8_t exif_segment = 0xe1, start_of_scan = 0xda;
  constexpr std::string_view mark("Exif\0\0", 6);
  for (std::size_t at = 2; at + 4 <= bytes.size();) {
    if (bytes[at] != 0xff || bytes[at + 1] == start_of_scan) return 1;
    const std::size_t length = number_at(bytes, at + 2, 2, false), end = at + 2 + length, tiff = at + 4 + mark.size();
    if (bytes[at + 1] == exif_segment && begins_with(bytes, at + 4, mark) && tiff <= end) {
      if (end > bytes.size()) break;
      return tiff_orientation(bytes.subspan(tiff, end - tiff));
    }
    at += 2 + std::max<std::size_t>(length, 2);
  }
  return {};
}

/// Scans a PNG's chunks: length, type, content, checksum.
std::optional<int> png_orientation(Bytes bytes) {
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    if (begins_with(bytes, at + 4, "IDAT")) return 1;
    const std::size_t length = number_at(bytes, at, 4, false);
    if (begins_with(bytes, at + 4, "eXIf")) {
      if (length > bytes.size() - at - 8) break;
      return tiff_orientation(bytes.subspan(at + 8, length));
    }
    at += 12 + length;
  }
  return {};
}

}  // namespace

std::optional<int> exif_orientation(const std::vector<std::uint8_t>& bytes) {
  if (begins_with(bytes, 0, "\xff\xd8")) return jpeg_orientation(bytes);
  return begins_with(bytes, 0, "\x89PNG") ? png_orientation(bytes) : 1;
}

// Orientations 5 to 8 are transposed first; then 2, 3, 6, 7 mirror columns, and 3, 4, 7, 8 mirror rows.
Image upright(Image image, int orientation) {
  if (orientation == 1) return image;
  const auto [channels, height, width] = image.size;
  const bool turned = swaps_sides(orientation);
  const bool columns = orientation == 2 || orientation == 3 || orientation == 6 || orientation == 7;
  const bool rows = orientation == 3 || orientation == 4 || orientation == 7 || orientation == 8;
  Image result{turned ? ImageSize{channels, width, height} : image.size,
               std::vector<std::uint8_t>(image.pixels.size())};
  auto to = result.pixels.begin();
  for (Index c = 0; c < channels; ++c)
    for (Index y = 0; y < result.size.height; ++y)
      for (Index x = 0; x < result.size.width; ++x) {
        const Index v = rows ? result.size.height - 1 - y : y, u = columns ? result.size.width - 1 - x : x;
        const Index from = turned ? u * width + v : v * width + u;
        *to++ = image.pixels[static_cast<std::size_t>(c * height * width + from)];
      }
  return result;
}

}  // namespace heed::data
