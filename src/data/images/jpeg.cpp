#include "jpeg.h"

#include <cstddef>

namespace heed::data {

namespace {

constexpr int start_of_image = 0xd8, end_of_image = 0xd9, huffman_tables = 0xc4, start_of_scan = 0xda, adobe = 0xee;

/// Returns true for markers of frames that are decoded: baseline, extended, progressive.
bool is_frame(int marker) { return marker >= 0xc0 && marker <= 0xc2; }

/// Returns true for markers without content; all others are followed by a length, which includes its own two bytes.
bool is_bare(int marker) { return marker <= 0x01 || (marker >= 0xd0 && marker <= start_of_image); }

}  // namespace

JpegDemands jpeg_demands(const std::vector<std::uint8_t>& bytes) {
  // Reads zeros beyond the end, like stb_image.
  const auto byte = [&](std::size_t at) { return at < bytes.size() ? static_cast<int>(bytes[at]) : 0; };
  JpegDemands demands;
  if (byte(0) != 0xff) return demands;
  bool marked = false;
  std::size_t at = 0;
  while (at < bytes.size()) {
    // A marker is the first byte other than 0xff after one or more of 0xff; the entropy-coded data between markers
    // writes 0xff as 0xff 0.
    if (byte(at) != 0xff || byte(at + 1) == 0xff) {
      ++at;
      continue;
    }
    const int marker = byte(at + 1);
    at += 2;
    if (marker == end_of_image) break;
    if (is_bare(marker)) continue;
    ++demands.parts;
    if (marker == start_of_scan) ++demands.scans;
    const int length = byte(at) << 8 | byte(at + 1);
    // A frame: length, precision, height, width, number of channels. Adobe's segment precedes it.
    marked |= marker == adobe;
    if (is_frame(marker)) demands.cmyk_without_mark = byte(at + 7) == 4 && !marked;
    if (marker == huffman_tables) {
      // Each table: a byte, the numbers of codes of length 1 to 16, then one byte per code.
      int left = length - 2;
      for (std::size_t table = at + 2; left > 0;) {
        int codes = 0;
        for (std::size_t i = 1; i <= 16; ++i) codes += byte(table + i);
        if (codes > 256) demands.tables_fit = false;
        ++demands.parts;
        table += static_cast<std::size_t>(17 + codes);
        left -= 17 + codes;
      }
    }
    at += static_cast<std::size_t>(length);
  }
  return demands;
}

}  // namespace heed::data
