// Checks of JPEG files before stb_image reads them.
#pragma once

#include "heed/base/tensor.h"

#include <cstdint>
#include <vector>

namespace heed::data {

/// Decoder cost of a JPEG file.
struct JpegDemands {
  /// No Huffman table announces more than the 256 codes that there can be. stb_image before 2.28 writes beyond its
  /// tables for such files (nothings/stb issue 1289), in the header already.
  bool tables_fit = true;
  bool cmyk_without_mark = false;  ///< four channels, of which nothing says what they mean
  Index parts = 0;  ///< segments and Huffman tables, each of which may take a microsecond whatever its length
  Index scans = 0;  ///< passes over the image
};

/// Returns zeros for a file that is no JPEG, and the counts so far for the beginning of a file.
JpegDemands jpeg_demands(const std::vector<std::uint8_t>& bytes);

}  // namespace heed::data
