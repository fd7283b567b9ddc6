// CRC-32 of gzip, PNG and zlib: polynomial x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8 + x^7 + x^5 +
// x^4 + x^2 + x + 1, lowest bits first, all bits inverted at the beginning and the end.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed {

/// Returns the checksum `before` (0 for no bytes), continued over `count` more bytes.
std::uint32_t crc32(std::uint32_t before, const void* bytes, std::size_t count);

}  // namespace heed
