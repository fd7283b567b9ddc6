#include "crc32.h"

#ifndef HEED_NO_ZLIB
#include <zlib.h>

std::uint32_t heed::crc32(std::uint32_t before, const void* bytes, std::size_t count) {
  // zlib restarts the checksum if given a null pointer, as `bytes` may be for count = 0.
  return count == 0 ? before : static_cast<std::uint32_t>(crc32_z(before, static_cast<const Bytef*>(bytes), count));
}

#else
#include <array>

namespace {

/// Remainder for each value of the byte that is shifted out.
constexpr std::array<std::uint32_t, 256> remainders = [] {
  std::array<std::uint32_t, 256> all{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t& rest = all[byte] = byte;
    for (int bit = 0; bit < 8; ++bit) rest = rest >> 1 ^ (rest & 1 ? 0xedb88320 : 0);
  }
  return all;
}();

}  // namespace

std::uint32_t heed::crc32(std::uint32_t before, const void* bytes, std::size_t count) {
  std::uint32_t rest = ~before;
  for (std::size_t i = 0; i < count; ++i)
    rest = rest >> 8 ^ remainders[(rest ^ static_cast<const unsigned char*>(bytes)[i]) & 255];
  return ~rest;
}

#endif
