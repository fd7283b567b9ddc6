// Checksums of files, by which it is seen that one has changed.
#pragma once

#include <fmt/format.h>
#include <zlib.h>

#include <string>

namespace heed::cli {

/// CRC-32 and length, such as "0badc0de-1024".
inline std::string checksum(const std::string& bytes) {
  return fmt::format("{:08x}-{}", crc32_z(0, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size()), bytes.size());
}

}  // namespace heed::cli
