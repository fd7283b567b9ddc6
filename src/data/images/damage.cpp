#include "damage.h"

#include "bytes.h"

#include <zlib.h>

namespace heed::data {

namespace {

constexpr const char* ends_early = "the file ends early";

/// A chunk consists of length, type, content, and the checksum of type and content; the last chunk has the type IEND.
/// Only the checksums of header, palette and pixels are checked: viewers ignore wrong checksums of other chunks, such
/// as texts.
std::string png_damage(Bytes bytes) {
  constexpr std::size_t signature = 8, around = 12;
  for (std::size_t at = signature; at < bytes.size();) {
    if (bytes.size() - at < around) return ends_early;
    const std::size_t length = number_at(bytes, at, 4, false);
    if (length > bytes.size() - at - around) return ends_early;
    if (begins_with(bytes, at + 4, "IEND")) break;
    const uLong checksum = crc32(0, bytes.data() + at + 4, static_cast<unsigned>(4 + length));
    const bool wrong = checksum != number_at(bytes, at + 8 + length, 4, false);
    for (const std::string_view type : {"IHDR", "PLTE", "IDAT"})
      if (wrong && begins_with(bytes, at + 4, type)) return fmt::format("the checksum of its {} chunk is wrong", type);
    at += around + length;
  }
  return {};
}

/// Rows are padded to a multiple of four bytes; the padding of the last row may be missing.
std::string bmp_damage(Bytes bytes, const ImageSize& size) {
  const std::size_t header = number_at(bytes, 14, 4, true), bits = number_at(bytes, header == 12 ? 24 : 28, 2, true);
  const std::size_t row_bits = static_cast<std::size_t>(size.width) * bits;
  const std::size_t rows = (row_bits + 31) / 32 * 4 * static_cast<std::size_t>(size.height - 1) + (row_bits + 7) / 8;
  return number_at(bytes, 10, 4, true) + rows > bytes.size() ? ends_early : "";
}

/// The header and its palette are followed by extensions, each introduced by 0x21, then by a frame, introduced by 0x2c.
/// An extension or frame ends with blocks of data, each preceded by its length; a length of 0 follows the last block.
std::string gif_damage(Bytes bytes) {
  const auto palette = [&](std::size_t flags) {
    const std::size_t value = number_at(bytes, flags, 1, true);
    return value & 0x80 ? std::size_t{6} << (value & 7) : std::size_t{0};
  };
  std::size_t at = 13 + palette(10);
  while (at < bytes.size()) {
    const std::size_t kind = bytes[at];
    if (kind != 0x21 && kind != 0x2c) return {};  // stb_image reports an unknown block
    at += kind == 0x21 ? 2 : 11 + palette(at + 9);
    while (number_at(bytes, at, 1, true) > 0) at += 1 + bytes[at];
    if (kind == 0x2c) break;
    ++at;
  }
  return at < bytes.size() ? "" : ends_early;
}

}  // namespace

std::string damage(const std::vector<std::uint8_t>& bytes, const ImageSize& size) {
  switch (bytes.empty() ? 0 : bytes[0]) {
    case 0x89:
      return png_damage(bytes);
    case 'B':
      return bmp_damage(bytes, size);
    case 'G':
      return gif_damage(bytes);
    default:
      return {};
  }
}

}  // namespace heed::data
