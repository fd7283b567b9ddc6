// CRC-32 as gzip, PNG and zlib have it: polynomial x^32 + x^26 + x^23 + x^22 + x^16 + x^12 + x^11 + x^10 + x^8 + x^7 +
// x^5 + x^4 + x^2 + x + 1, lowest bits first, begun and ended with all bits turned round.
#pragma once

#include <cstddef>
#include <cstdint>

namespace heed {

/// The checksum `before` of some bytes, 0 of none, goes on over `count` more.
std::uint32_t crc32(std::uint32_t before, const void* bytes, std::size_t count);

}  // namespace heed
