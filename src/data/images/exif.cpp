#include "exif.h"

#include "bytes.h"
#include "jpeg.h"

#include <span>

namespace heed::data {

namespace {

/// Returns the orientation in a TIFF structure: byte order, offset of the first directory, then entries of 12 bytes.
int tiff_orientation(Bytes tiff) {
  constexpr std::size_t orientation = 0x0112, short_type = 3, long_type = 4;
  const bool little = begins_with(tiff, 0, "II");
  if (!little && !begins_with(tiff, 0, "MM")) return 1;
  const std::size_t directory = number_at(tiff, 4, 4, little), entries = number_at(tiff, directory, 2, little);
  for (std::size_t i = 0; i < entries; ++i) {
    const std::size_t entry = directory + 2 + 12 * i;
    if (entry + 12 > tiff.size()) break;
    const std::size_t type = number_at(tiff, entry + 2, 2, little);
    if (number_at(tiff, entry, 2, little) != orientation || (type != short_type && type != long_type)) continue;
    const std::size_t value = number_at(tiff, entry + 8, type == short_type ? 2 : 4, little);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

/// Scans a JPEG's segments up to the image data.
std::optional<int> jpeg_orientation(Bytes bytes) {
  constexpr std::string_view mark("Exif\0\0", 6);
  std::size_t at = 0;
  while (const int marker = next_jpeg_marker(bytes, at)) {
    if (marker == jpeg_scan || marker == jpeg_end) return 1;
    const std::size_t end = at + number_at(bytes, at, 2, false), tiff = at + 2 + mark.size();
    if (marker == jpeg_exif && begins_with(bytes, at + 2, mark) && tiff <= end) {
      if (end > bytes.size()) break;
      return tiff_orientation(bytes.subspan(tiff, end - tiff));
    }
    at = end;
  }
  return {};
}

/// Scans a PNG's chunks: length, type, content, checksum.
std::optional<int> png_orientation(Bytes bytes) {
  for (std::size_t at = 8; at + 12 <= bytes.size();) {
    if (begins_with(bytes, at + 4, "IEND")) return 1;
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
        *to++ = image.pixels[c * height * width + from];
      }
  return result;
}

}  // namespace heed::data
