// Segments of JPEG files, and checks before stb_image reads them.
#pragma once

#include "heed/base/tensor.h"

#include <cstdint>
#include <span>
#include <vector>

namespace heed::data {

/// Markers of a JPEG.
inline constexpr int jpeg_start = 0xd8, jpeg_end = 0xd9, jpeg_scan = 0xda, jpeg_exif = 0xe1;

/// Returns the next marker, or 0 at the end of the bytes. Moves `at` past the marker, to the length of its segment (two
/// bytes, which count themselves). Skips fill bytes, image data, and markers without a segment other than jpeg_end.
int next_jpeg_marker(std::span<const std::uint8_t> bytes, std::size_t& at);

/// Decoder cost of a JPEG file.
struct JpegDemands {
  /// True if no Huffman table declares more than the maximum of 256 codes. For files with a larger table, stb_image
  /// before 2.28 writes beyond its tables (nothings/stb issue 1289), even while reading the header.
  bool tables_fit = true;
  bool cmyk_without_mark = false;  ///< four channels of undeclared meaning
  Index height = 0, width = 0;     ///< in pixels, as declared
  Index parts = 0;                 ///< segments and Huffman tables; each may take a microsecond, whatever its length
  Index scans = 0;                 ///< passes over the image
};

/// Returns the decoder cost of a JPEG file, or of the given beginning of one; default values for other files.
JpegDemands jpeg_demands(const std::vector<std::uint8_t>& bytes);

}  // namespace heed::data
