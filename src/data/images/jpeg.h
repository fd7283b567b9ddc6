// Checks of JPEG files before stb_image reads them.
#pragma once

#include "heed/base/tensor.h"

#include <cstdint>
#include <vector>

namespace heed::data {

/// Decoder cost of a JPEG file.
struct JpegDemands {
  /// True if no Huffman table declares more than the maximum of 256 codes. For such files, stb_image before 2.28
  /// writes beyond its tables (nothings/stb issue 1289), even while reading the header.
  bool tables_fit = true;
  bool cmyk_without_mark = false;  ///< four channels of undeclared meaning
  Index parts = 0;                 ///< segments and Huffman tables; each may take a microsecond, whatever its length
  Index scans = 0;                 ///< passes over the image
};

/// Returns the decoder cost of a JPEG file, or of the given beginning of one; zeros for other files.
JpegDemands jpeg_demands(const std::vector<std::uint8_t>& bytes);

}  // namespace heed::data
