#include "jpeg.h"

#include <cstddef>

namespace heed::data {

namespace {

constexpr int huffman_tables = 0xc4, adobe = 0xee;

/// Returns true for markers of frames that are decoded: baseline, extended, progressive.
bool is_frame(int marker) { return marker >= 0xc0 && marker <= 0xc2; }

/// Returns true for markers without a segment except jpeg_end, and for the 0 that follows 0xff in image data.
bool is_bare(int marker) { return marker <= 0x01 || (marker >= 0xd0 && marker <= jpeg_start); }

}  // namespace

int next_jpeg_marker(std::span<const std::uint8_t> bytes, std::size_t& at) {
  // A marker is the first byte other than 0xff after one or more bytes of 0xff.
  while (at + 1 < bytes.size()) {
    const int marker = bytes[at++] == 0xff ? bytes[at] : 0xff;
    if (marker == 0xff) continue;
    ++at;
    if (!is_bare(marker)) return marker;
  }
  return 0;
}

JpegDemands jpeg_demands(const std::vector<std::uint8_t>& bytes) {
  // Reads zeros beyond the end, like stb_image.
  const auto byte = [&](std::size_t at) { return at < bytes.size() ? static_cast<int>(bytes[at]) : 0; };
  JpegDemands demands;
  if (byte(0) != 0xff) return demands;
  bool marked = false;
  std::size_t at = 0;
  for (int marker; (marker = next_jpeg_marker(bytes, at)) != 0 && marker != jpeg_end;) {
    ++demands.parts;
    if (marker == jpeg_scan) ++demands.scans;
    const int length = byte(at) << 8 | byte(at + 1);
    // A frame: length, precision, height, width, number of channels. Adobe's segment precedes it.
    marked |= marker == adobe;
    if (is_frame(marker)) {
      demands.height = byte(at + 3) << 8 | byte(at + 4);
      demands.width = byte(at + 5) << 8 | byte(at + 6);
      demands.cmyk_without_mark = byte(at + 7) == 4 && !marked;
    }
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
