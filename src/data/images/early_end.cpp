#include "early_end.h"

#include "bytes.h"

namespace heed::data {

namespace {

using Bytes = std::span<const std::uint8_t>;

/// A chunk is length, type, content, checksum; the last has the type IEND.
bool ends_within_chunk(Bytes bytes) {
  constexpr std::size_t signature = 8, around = 12;
  for (std::size_t at = signature; at < bytes.size();) {
    if (bytes.size() - at < around) return true;
    const std::size_t length = number_at(bytes, at, 4, false);
    if (length > bytes.size() - at - around) return true;
    if (begins_with(bytes, at + 4, "IEND")) return false;
    at += around + length;
  }
  return false;
}

/// Rows are padded to four bytes, the last one perhaps not.
bool ends_within_rows(Bytes bytes, const ImageSize& size) {
  const std::size_t header = number_at(bytes, 14, 4, true), bits = number_at(bytes, header == 12 ? 24 : 28, 2, true);
  const std::size_t row_bits = static_cast<std::size_t>(size.width) * bits;
  const std::size_t rows = (row_bits + 31) / 32 * 4 * static_cast<std::size_t>(size.height - 1) + (row_bits + 7) / 8;
  return number_at(bytes, 10, 4, true) + rows > bytes.size();
}

/// Blocks follow the header and its palette: extensions, each introduced by 0x21, then a frame, introduced by 0x2c.
/// Both end with blocks of data, each preceded by its length; a length of 0 ends them.
bool ends_within_first_frame(Bytes bytes) {
  const auto palette = [&](std::size_t flags) {
    const std::size_t value = number_at(bytes, flags, 1, true);
    return value & 0x80 ? std::size_t{6} << (value & 7) : std::size_t{0};
  };
  std::size_t at = 13 + palette(10);
  while (at < bytes.size()) {
    const std::size_t kind = bytes[at];
    if (kind != 0x21 && kind != 0x2c) return false;  // stb_image reports an unknown block
    at += kind == 0x21 ? 2 : 11 + palette(at + 9);
    while (number_at(bytes, at, 1, true) > 0) at += 1 + bytes[at];
    if (kind == 0x2c) return at >= bytes.size();
    ++at;
  }
  return true;
}

}  // namespace

bool ends_early(const std::vector<std::uint8_t>& bytes, const ImageSize& size) {
  switch (bytes.empty() ? 0 : bytes[0]) {
    case 0x89:
      return ends_within_chunk(bytes);
    case 'B':
      return ends_within_rows(bytes, size);
    case 'G':
      return ends_within_first_frame(bytes);
    default:
      return false;
  }
}

}  // namespace heed::data
