// What JPEG files are checked for before stb_image sees them.
#pragma once

#include "heed/base/tensor.h"

#include <cstdint>
#include <vector>

namespace heed::data {

/// What a JPEG file asks of its decoder.
struct JpegDemands {
  /// No Huffman table announces more than the 256 codes that there can be. stb_image before 2.28 writes beyond its
  /// tables for such files (nothings/stb issue 1289), in the header already.
  bool tables_fit = true;
  Index parts = 0;  ///< segments and Huffman tables, each of which may take a microsecond whatever its length
  Index scans = 0;  ///< passes over the image
};

/// Of a file that is no JPEG: nothing. Of the beginning of a file: what is there already.
JpegDemands jpeg_demands(const std::vector<std::uint8_t>& bytes);

}  // namespace heed::data
